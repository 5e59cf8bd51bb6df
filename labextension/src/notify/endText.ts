/** What notifications say of a job's end. */
import type { TranslationBundle } from '@jupyterlab/translation';

import { elapsedSeconds, type Job } from '../jobs/job';
import { formatDuration } from '../ui/format';
import { failureText, reasonText } from '../ui/statusText';
import type { Toast } from '../ui/toast';

/** The notification of a job's end in the page. */
export function endToast(job: Job, trans: TranslationBundle): Toast {
  const { name, state, delivery } = job;
  if (state === 'failed') {
    const text = trans.__('%1 failed: %2', name, failureText(job, trans));
    return { type: 'error', text };
  }
  const text = endTitle(job, trans);
  if (delivery.state === 'held' || delivery.state === 'failed') {
    return {
      type: 'warning',
      text: trans.__(
        '%1, but its notebook could not be delivered: %2',
        text,
        delivery.message ?? ''
      )
    };
  }
  return { type: state === 'cancelled' ? 'info' : 'success', text };
}

/** A job's name and what became of it. */
export function endTitle(job: Job, trans: TranslationBundle): string {
  const { name, state } = job;
  const time = elapsedSeconds(job);
  if (state === 'cancelled') {
    return trans.__('%1 was cancelled', name);
  }
  if (state === 'failed') {
    return trans._p('name of a job', '%1 failed', name);
  }
  return time === null
    ? trans.__('%1 finished', name)
    : trans.__('%1 finished in %2', name, formatDuration(time, trans));
}

/**
 * What a notification of the computer says below the title. Others may see it, also on a locked
 * screen: the job's own message is left out, because it may quote values of the notebook.
 */
export function publicText(job: Job, trans: TranslationBundle): string {
  const { notebook, reason, state, delivery } = job;
  const why =
    state === 'failed' && reason !== null ? reasonText(reason, trans) : null;
  const isUndelivered =
    delivery.state === 'held' || delivery.state === 'failed';
  return [
    notebook,
    why && why.charAt(0).toLocaleUpperCase() + why.slice(1),
    isUndelivered && trans.__('Its notebook could not be delivered')
  ]
    .filter(Boolean)
    .join('\n');
}
