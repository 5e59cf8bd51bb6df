/** Makes one line of all jobs of a group, at the place of the newest of them. */
import type { Job } from '../jobs/job';
import type { JobLine } from './model';

/** The line of a group, with all its jobs that are loaded. */
export type SweepRow = {
  kind: 'sweep';
  key: string;
  group: string;
  jobs: Job[];
  isOpen: boolean;
};

/**
 * Make lines of jobs. A group of which several jobs are known has a line of its own, which its jobs
 * follow if it is open.
 *
 * @param jobs what is shown
 * @param all all loaded jobs, some of which a filter may hide
 */
export function gatherSweeps(
  jobs: readonly Job[],
  all: readonly Job[],
  isOpen: (group: string) => boolean
): (SweepRow | JobLine)[] {
  const members = groupJobs(all);
  if (members.size === 0) {
    return jobs.map(job => toLine(job));
  }
  const shown = groupJobs(jobs);
  const seen = new Set<string>();
  return jobs.flatMap((job): (SweepRow | JobLine)[] => {
    const { group } = job;
    const known = group === null ? undefined : members.get(group);
    if (group === null || known === undefined || known.length < 2) {
      return [toLine(job)];
    }
    if (seen.has(group)) {
      return [];
    }
    seen.add(group);
    const isGroupOpen = isOpen(group);
    const head: SweepRow = {
      kind: 'sweep',
      key: `group ${group}`,
      group,
      jobs: known,
      isOpen: isGroupOpen
    };
    const lines = isGroupOpen ? (shown.get(group) ?? []) : [];
    return [head, ...lines.map(member => toLine(member, true))];
  });
}

function toLine(job: Job, isMember = false): JobLine {
  return { kind: 'job', key: job.name, job, ...(isMember && { isMember }) };
}

function groupJobs(jobs: readonly Job[]): Map<string, Job[]> {
  const groups = new Map<string, Job[]>();
  for (const job of jobs) {
    if (job.group !== null) {
      const members = groups.get(job.group);
      if (members === undefined) {
        groups.set(job.group, [job]);
      } else {
        members.push(job);
      }
    }
  }
  return groups;
}
