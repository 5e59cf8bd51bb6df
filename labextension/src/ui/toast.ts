/** Notifications with a way to long texts: JupyterLab shows only 140 characters of a message. */
import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

/** How long a notification is shown, in milliseconds; it stays in the notification center. */
export const AUTO_CLOSE_MS = 15_000;

/** How many characters of a message JupyterLab shows. */
const MAX_CHARS = 140;

export type Toast = {
  type: Notification.TypeOptions;
  text: string;
  actions?: Notification.IAction[];
};

/** Show a notification, with a button for the full text if that is long; returns its id. */
export function showToast(
  { type, text, actions = [] }: Toast,
  trans: TranslationBundle
): string {
  const details: Notification.IAction = {
    label: trans.__('Details'),
    callback: event => {
      event.preventDefault(); // Keep the notification open.
      void showDialog({
        title: trans.__('Jupyter to Job'),
        body: text,
        buttons: [Dialog.okButton({ label: trans.__('Close') })]
      });
    }
  };
  const options = {
    autoClose: AUTO_CLOSE_MS,
    actions: text.length > MAX_CHARS ? [...actions, details] : actions
  };
  return Notification.emit(text, type, options);
}
