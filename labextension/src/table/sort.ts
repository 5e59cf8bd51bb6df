/** The order of the table's rows. */
import type { Job } from '../jobs/job';
import type { Column, SortKey } from './columns';

/** Sort jobs by a column. Equal ones keep their order. */
export function sortByColumn(
  jobs: readonly Job[],
  { sortKey }: Pick<Column, 'sortKey'>,
  isDescending: boolean
): Job[] {
  // Each key is computed once: a comparison is made 130,000 times for 10,000 jobs.
  const keyed = jobs.map(job => ({ job, key: sortKey(job) }));
  keyed.sort((a, b) => compareKeys(a.key, b.key, isDescending ? -1 : 1));
  return keyed.map(({ job }) => job);
}

function compareKeys(a: SortKey, b: SortKey, direction: 1 | -1): number {
  if (a === b) {
    return 0;
  }
  if (a === null || b === null) {
    return a === null ? 1 : -1;
  }
  if (typeof a !== typeof b) {
    return typeof a === 'number' ? -1 : 1;
  }
  return a < b ? -direction : direction;
}

/**
 * The order without a sorted column: what runs, then the queue in its own order, then what has
 * ended.
 *
 * @param jobs the newest first
 */
export function sortRunningFirst(jobs: readonly Job[]): Job[] {
  const running: Job[] = [];
  const queued: Job[] = [];
  const ended: Job[] = [];
  for (const job of jobs) {
    const part =
      job.state === 'running' || job.state === 'starting'
        ? running
        : job.state === 'queued'
          ? queued
          : ended;
    part.push(job);
  }
  const place = ({ position }: Job) => position ?? Infinity;
  // Infinity minus Infinity is NaN, which is no order.
  queued.sort((a, b) => place(a) - place(b) || 0);
  return [...running, ...queued, ...ended];
}
