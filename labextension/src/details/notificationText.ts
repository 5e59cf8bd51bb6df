/** What hooks were told of a job, in words. */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { HookNotification } from '../api';

/** Which event it was about; the server's word if this version does not know it. */
function eventName(event: string, trans: TranslationBundle): string {
  const names: Record<string, string> = {
    succeeded: trans.__('Succeeded'),
    failed: trans.__('Failed'),
    cancelled: trans.__('Cancelled'),
    waiting_longer_than: trans.__('Waits too long'),
    running_longer_than: trans.__('Runs too long')
  };
  return names[event] ?? event;
}

export function notificationText(
  { event, state, tries, message }: HookNotification,
  trans: TranslationBundle
): string {
  const states = {
    pending: trans.__('not sent yet'),
    sent: trans.__('sent'),
    given_up: trans.__('given up')
  };
  const text = trans.__('%1: %2', eventName(event, trans), states[state]);
  const count = tries > 1 ? trans.__('%1 (try %2)', text, tries) : text;
  return message === null ? count : `${count}. ${message}`;
}
