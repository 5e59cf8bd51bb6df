/**
 * What the server says about a job: its words, not ours. The types are generated from
 * `docs/openapi.yaml`; this module adds only what can be read off them.
 */
import type { JSONValue } from '@lumino/coreutils';

import type {
  Changes as Differences,
  Job,
  Submission as Request
} from '../api';

export type { Delivery, Job, State as JobState, Progress } from '../api';

/** The schema id of the events that tell of every change of a job. */
export const JOB_EVENT = 'https://schema.jupyter-to-job.io/job/v1';

/** The schema id of the events that tell that a job was deleted. */
export const DELETED_EVENT = 'https://schema.jupyter-to-job.io/job-deleted/v1';

/** The schema id of the events that tell how the inputs of a submission are being copied. */
export const SUBMISSION_EVENT =
  'https://schema.jupyter-to-job.io/submission/v1';

/** How far the files of the submission with this idempotency key are copied, in bytes. */
export type CopyProgress = { key: string; bytes: number; total: number };

/** What says which notebook it is. */
type NotebookFields = 'notebook' | 'content' | 'expected_sha256';

/** What a user may say of it, in the words of the request. */
type ChoiceFields =
  | 'flavor'
  | 'device'
  | 'isolated'
  | 'env'
  | 'max_runtime'
  | 'output'
  | 'name'
  | 'priority';

/** What a job may be told beside its notebook: the server's catalog fills in what is left out. */
export type Choices = {
  [Field in ChoiceFields]?: Exclude<Request[Field], null>;
} & {
  parameters?: Record<string, JSONValue>;
  /** Files, folders and globs: a browser has no blobs of them. */
  inputs?: string[];
};

/** What is sent to have a notebook run. */
export type Submission = Choices & Pick<Request, NotebookFields>;

/** What is to be different when a job runs again. */
export type Changes = Partial<Differences>;

/** Whether a job has ended, however. */
export function isFinal(job: Job): boolean {
  return ['succeeded', 'failed', 'cancelled'].includes(job.state);
}

/** Where the result of a job is, relative to the server's root; null: nowhere. */
export function resultPath({ delivery }: Job): string | null {
  return delivery.state === 'delivered' ? delivery.path : null;
}

/** The seconds that a job has run, until `now` if it still does; null where nobody knows. */
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

/** Whether nothing more happens to a job: it has ended and its result is where it will be. */
export function isSettled(job: Job): boolean {
  return isFinal(job) && job.delivery.state !== 'pending';
}
