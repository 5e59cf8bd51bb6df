/** Notifications that keep what does not fit: JupyterLab shows 140 characters of a message. */
import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

/** How long a toast stays, in milliseconds; it remains in the notification centre after that. */
const AUTO_CLOSE_MS = 15_000;

/** How much of a message is shown. */
const MAX_CHARS = 140;

/** Something to tell the user. */
export type Toast = {
  type: Notification.TypeOptions;
  text: string;
  actions?: Notification.IAction[];
  /** The notification that this one takes the place of. */
  replaces?: string;
};

/** Show a toast, with a way to the whole text where it is long; returns the notification's id. */
export function showToast(
  { type, text, actions = [], replaces }: Toast,
  trans: TranslationBundle
): string {
  const details: Notification.IAction = {
    label: trans.__('Details'),
    callback: event => {
      event.preventDefault(); // Reading is not answering: the notification stays.
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
  if (
    replaces !== undefined &&
    Notification.update({ id: replaces, type, message: text, ...options })
  ) {
    return replaces;
  }
  return Notification.emit(text, type, options);
}
