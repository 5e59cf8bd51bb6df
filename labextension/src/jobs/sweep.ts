/**
 * Sweeps and groups: the runs that several values make, and how the jobs of a group stand. The
 * command line has the same rules.
 */
import { JSONExt, type JSONValue } from '@lumino/coreutils';

import type { Run as AnyRun, Sweep } from '../api';
import { isFinal, type Job, type Submission } from './job';

export type { Results, ResultColumn, SweptJobs } from '../api';

/** The most runs of one request. */
export const MAX_RUNS = 500;

/** What one run has of its own. */
export type Run = Pick<AnyRun, 'flavor' | 'device'> & {
  parameters?: Record<string, JSONValue>;
};

/** What makes several jobs of a submission. */
export type SweepFields = { runs: Run[] } & {
  [Field in 'group' | 'group_limit']?: Exclude<Sweep[Field], null>;
};

/** The body of a submission of several jobs. */
export type SweepSubmission = Submission & SweepFields;

/** The runs along one thing that a sweep varies: a parameter, or flavor and device. */
export type Axis = { name: string; runs: Run[] };

/** How several axes are combined: each value with each, or the first ones, the second ones… */
export type Combination = 'grid' | 'zip';

/** How many runs the axes make; null if they cannot be zipped, because their lengths differ. */
export function countRuns(
  axes: readonly Axis[],
  combination: Combination
): number | null {
  const lengths = axes.map(({ runs }) => runs.length);
  if (combination === 'grid') {
    return lengths.reduce((product, length) => product * length, 1);
  }
  return new Set(lengths).size > 1 ? null : (lengths[0] ?? 1);
}

/** Make the runs of the axes, of which the last one varies first. */
export function combineRuns(
  axes: readonly Axis[],
  combination: Combination
): Run[] {
  if (combination === 'zip') {
    const count = countRuns(axes, 'zip') ?? 0;
    return Array.from({ length: count }, (_, index) =>
      axes.map(({ runs }) => runs[index]!).reduce(mergeRuns, {})
    );
  }
  return axes.reduce<Run[]>(
    (runs, axis) =>
      runs.flatMap(run => axis.runs.map(other => mergeRuns(run, other))),
    [{}]
  );
}

function mergeRuns(run: Run, other: Run): Run {
  const parameters = { ...run.parameters, ...other.parameters };
  return {
    ...run,
    ...other,
    ...(Object.keys(parameters).length > 0 && { parameters })
  };
}

/** The jobs of a group among some jobs. */
export function jobsOf(jobs: readonly Job[], group: string): Job[] {
  return jobs.filter(job => job.group === group);
}

/**
 * The jobs that count in a group, in the order of their submission: what failed or was cancelled
 * and was run again does not.
 */
export function standingJobs(jobs: readonly Job[]): Job[] {
  const rerun = new Set(jobs.map(job => job.rerun_of));
  const keyOf = ({ submitted, name }: Job) => `${submitted ?? ''} ${name}`;
  return jobs
    .filter(
      ({ name, state }) =>
        !(['failed', 'cancelled'].includes(state) && rerun.has(name))
    )
    .sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

/** The names of the parameters that are not the same in all of these jobs. */
export function variedParameters(jobs: readonly Job[]): Set<string> {
  const valueOf = ({ parameters }: Job, name: string) =>
    (parameters as Record<string, JSONValue>)[name] ?? null;
  const names = jobs.flatMap(({ parameters }) => Object.keys(parameters));
  return new Set(
    names.filter(name =>
      jobs.some(
        job => !JSONExt.deepEqual(valueOf(job, name), valueOf(jobs[0]!, name))
      )
    )
  );
}

/** How many jobs of a group are in which state. */
export type GroupCounts = Record<
  | 'all'
  | 'waiting'
  | 'running'
  | 'succeeded'
  | 'failed'
  | 'cancelled'
  | 'ended',
  number
>;

/** Count the jobs of a group that stand. */
export function countStates(standing: readonly Job[]): GroupCounts {
  const count = (...states: Job['state'][]) =>
    standing.filter(({ state }) => states.includes(state)).length;
  return {
    all: standing.length,
    waiting: count('queued'),
    running: count('starting', 'running'),
    succeeded: count('succeeded'),
    failed: count('failed'),
    cancelled: count('cancelled'),
    ended: standing.filter(isFinal).length
  };
}
