/** Shows how the jobs of a group stand: a bar of what has ended, and their numbers in words. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReactElement } from 'react';

import type { Job } from '../jobs/job';
import { countStates, standingJobs, type SweptJobs } from '../jobs/sweep';

type Props = {
  group: string;
  /** All jobs of the group. */
  jobs: readonly Job[];
  trans: TranslationBundle;
};

export function GroupProgress({ group, jobs, trans }: Props): ReactElement {
  const { all, ended } = countStates(standingJobs(jobs));
  const text = groupText(jobs, trans);
  return (
    <>
      <p className="jp-ToJob-standing">{text}</p>
      {ended < all && (
        <div
          className="jp-ToJob-bar"
          role="progressbar"
          aria-label={trans.__('Jobs of %1 that have ended', group)}
          aria-valuemin={0}
          aria-valuemax={all}
          aria-valuenow={ended}
          aria-valuetext={text}
        >
          <span style={{ width: `${(100 * ended) / Math.max(all, 1)}%` }} />
        </div>
      )}
    </>
  );
}

/** `60 jobs: 40 succeeded, 2 failed, 6 running, 12 queued`; what was run again does not count. */
export function groupText(
  jobs: readonly Job[],
  trans: TranslationBundle
): string {
  const { all, ...counts } = countStates(standingJobs(jobs));
  const parts = [
    counts.succeeded > 0 && trans.__('%1 succeeded', counts.succeeded),
    counts.failed > 0 && trans.__('%1 failed', counts.failed),
    counts.cancelled > 0 && trans.__('%1 cancelled', counts.cancelled),
    counts.running > 0 && trans.__('%1 running', counts.running),
    counts.waiting > 0 && trans.__('%1 queued', counts.waiting)
  ].filter(Boolean);
  return trans._n('%1 job: %2', '%1 jobs: %2', all, parts.join(trans.__(', ')));
}

export function sweptText(
  { group, jobs }: SweptJobs,
  trans: TranslationBundle
): string {
  return trans._n(
    '%1 job was submitted as the group %2',
    '%1 jobs were submitted as the group %2',
    jobs.length,
    group
  );
}
