/**
 * Jobs and submissions as the REST API defines them. The types are generated from
 * `docs/openapi.yaml`; this module adds only what can be derived from them.
 */
import type { JSONValue } from '@lumino/coreutils';

import type {
  Changes as Differences,
  Job,
  Submission as Request
} from '../api';

export type {
  ClusterEvent,
  Delivery,
  Job,
  State as JobState,
  Progress
} from '../api';

/** The schema id of events about changed jobs. */
export const JOB_EVENT = 'https://schema.jupyter-to-job.io/job/v2';

/** The schema id of events about deleted jobs. */
export const DELETED_EVENT = 'https://schema.jupyter-to-job.io/job-deleted/v1';

/** The schema id of events about the copying of a submission's inputs. */
export const SUBMISSION_EVENT =
  'https://schema.jupyter-to-job.io/submission/v1';

/** How many bytes of a submission's inputs are copied; `key` is its idempotency key. */
export type CopyProgress = { key: string; bytes: number; total: number };

/** Fields that identify the notebook. */
type NotebookFields = 'notebook' | 'content' | 'expected_sha256';

/** Fields that say which jobs a job belongs to. They are no choice for the next one. */
type GroupFields = 'group' | 'group_limit' | 'rerun_of';

/** Fields that a user can choose, and that a browser sends as they are. */
type ChoiceFields = Exclude<
  keyof Request,
  | NotebookFields
  | GroupFields
  | 'packages'
  | 'parameters'
  | 'inputs'
  | 'plan'
  | 'results'
>;

/** The user's choices for a job. The server fills in the rest from the catalog. */
export type Choices = {
  [Field in ChoiceFields]?: Exclude<Request[Field], null>;
} & {
  parameters?: Record<string, JSONValue>;
  /** Files, folders and globs. A browser does not send blobs. */
  inputs?: string[];
};

/** The body of a submission. */
export type Submission = Choices & Pick<Request, NotebookFields | 'plan'>;

/** The differences of a rerun from the original job. */
export type Changes = Partial<Differences>;

/** The plan as a field of a request; an older server knows none, and tells none. */
export function planField(plan: Submission['plan']): Pick<Submission, 'plan'> {
  return plan ? { plan } : {};
}

/** Whether a cluster can tell why a job waits. */
export function isWaitingOnCluster({ backend, state }: Job): boolean {
  return backend === 'kubernetes' && ['queued', 'starting'].includes(state);
}

/** What a job is called in full: its own name has only letters that the cluster allows. */
export function fullName({ asked, notebook }: Job): string {
  return asked?.name ?? notebook;
}

/** The choices with which a job was submitted. An older server tells only a part of them. */
export function choicesOfJob(job: Job): Choices {
  const { flavor, device, priority, asked } = job;
  const output = asked?.output === undefined ? job.output : asked.output;
  const parameters = job.parameters as Record<string, JSONValue>;
  const inputs = asked?.inputs ?? job.inputs;
  return {
    flavor,
    device,
    ...(Object.keys(parameters).length > 0 && { parameters }),
    ...(inputs.length > 0 && { inputs }),
    ...(asked?.isolated && { isolated: true }),
    ...(asked?.max_runtime && { max_runtime: asked.max_runtime }),
    ...(asked?.name && { name: asked.name }),
    ...(output !== null && { output }),
    ...(priority !== 0 && { priority })
  };
}

/** Whether a job has ended, in whichever state. */
export function isFinal(job: Job): boolean {
  return ['succeeded', 'failed', 'cancelled'].includes(job.state);
}

/** Tells whether a job had ended at an earlier time. */
export type EndCheck = (job: Job) => boolean;

/** Whether a job has the name of an earlier one, which must be deleted by now. */
export function isSuccessor(job: Job, earlier: Job): boolean {
  return (
    earlier.submitted !== null &&
    job.submitted !== null &&
    job.submitted > earlier.submitted
  );
}

/** What of a job may differ: not when it was asked what the job waits for. */
export function contentOf(job: Job): string {
  const { wait } = job;
  return JSON.stringify(wait ? { ...job, wait: { ...wait, time: '' } } : job);
}

/** The delivered notebook's path, relative to the server's root; null if there is none. */
export function resultPath({ delivery }: Job): string | null {
  return delivery.state === 'delivered' ? delivery.path : null;
}

/** How long a job has run, in seconds, until `now` if it still runs; null if unknown. */
export function elapsedSeconds(
  job: Job,
  now: number = Date.now()
): number | null {
  const { started, finished } = job;
  if (started === null || (isFinal(job) && finished === null)) {
    return null;
  }
  const end = finished === null ? now : Date.parse(finished);
  return Math.max(end - Date.parse(started), 0) / 1000;
}

/**
 * Whether nothing more happens to a job: it has ended, and its result is delivered or will not be.
 */
export function isSettled(job: Job): boolean {
  return isFinal(job) && job.delivery.state !== 'pending';
}
