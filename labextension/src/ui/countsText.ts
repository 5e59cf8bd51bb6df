/** Says of many jobs how many are in which state. */
import type { TranslationBundle } from '@jupyterlab/translation';

import { isFinal, type Job } from '../jobs/job';

/** Count jobs by what became of them: `2 submitted, 3 succeeded, 1 failed`. */
export function countsText(
  jobs: readonly Job[],
  trans: TranslationBundle
): string {
  const count = (state: Job['state']) =>
    jobs.filter(job => job.state === state).length;
  const unfinished = jobs.filter(job => !isFinal(job)).length;
  const [succeeded, failed] = [count('succeeded'), count('failed')];
  const cancelled = count('cancelled');
  return [
    unfinished > 0 && trans.__('%1 submitted', unfinished),
    succeeded > 0 && trans.__('%1 succeeded', succeeded),
    failed > 0 && trans.__('%1 failed', failed),
    cancelled > 0 && trans.__('%1 cancelled', cancelled)
  ]
    .filter(Boolean)
    .join(trans.__(', '));
}

/** How a notification of several jobs looks. */
export function toastTypeOf(
  jobs: readonly Job[]
): 'error' | 'info' | 'success' {
  if (jobs.some(({ state }) => state === 'failed')) {
    return 'error';
  }
  return jobs.every(({ state }) => state === 'succeeded') ? 'success' : 'info';
}
