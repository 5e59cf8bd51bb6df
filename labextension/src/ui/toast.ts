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

/**
 * Show a notification; returns its id. If its text is long, and no action leads to details, it has
 * a button for the full text.
 */
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
  const hasDetails = actions.some(({ label }) => label === details.label);
  const options = {
    autoClose: AUTO_CLOSE_MS,
    actions:
      text.length > MAX_CHARS && !hasDetails ? [...actions, details] : actions
  };
  return Notification.emit(text, type, options);
}
