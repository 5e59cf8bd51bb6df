/**
 * Announces changes of jobs' states to screen readers, several at once in one message. Ends are
 * left to notifications, which are read out, too.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import { isFinal, type Job } from '../jobs/job';
import type { IJobs } from '../tokens';
import { statusText } from '../ui/statusText';

/** How long changes are collected, in milliseconds. */
const GATHER_MS = 1000;

/** More changes than this are announced by their number only. */
const MAX_NAMED = 3;

/**
 * Announce changes of jobs until the returned function is called.
 *
 * @param announce gets each message
 */
export function announceChanges(
  jobs: IJobs,
  announce: (text: string) => void,
  trans: TranslationBundle
): () => void {
  const states = new Map(jobs.all.map(({ name, state }) => [name, state]));
  const pending = new Map<string, Job>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const announcePending = () => {
    const texts = [...pending.values()].map(
      job => `${job.name}: ${statusText(job, trans)}`
    );
    timer = undefined;
    pending.clear();
    announce(
      texts.length > MAX_NAMED
        ? trans.__('%1 jobs changed', texts.length)
        : texts.join('. ')
    );
  };
  const onChanged = (_: IJobs, job: Job) => {
    const previous = states.get(job.name);
    states.set(job.name, job.state);
    if (previous !== undefined && previous !== job.state && !isFinal(job)) {
      pending.set(job.name, job);
      timer ??= setTimeout(announcePending, GATHER_MS);
    }
  };
  jobs.changed.connect(onChanged);
  return () => {
    clearTimeout(timer);
    jobs.changed.disconnect(onChanged);
  };
}
