/**
 * What the server says about a job: its words, not ours. The fields are those of the job events
 * (schema `JOB_EVENT`) and of the REST interface; this module adds only what can be read off them.
 */

/** The schema id of the events that tell of every change of a job. */
export const JOB_EVENT = 'https://schema.jupyter-to-job.io/job/v1';

/** Where a job stands. */
export type JobState =
  'queued' | 'starting' | 'running' | 'succeeded' | 'failed' | 'cancelled';

/** What became of the result; `path` is relative to the server's root. */
export type Delivery = {
  state: 'pending' | 'delivered' | 'held' | 'failed' | 'none';
  path: string | null;
  message: string | null;
};

/** How far the notebook has run. */
export type Progress = {
  cells_done: number;
  cells_total: number;
  current_cell: number | null;
};

/** One submission, as the server describes it: the fields that this extension reads. */
export type Job = {
  name: string;
  notebook: string;
  state: JobState;
  reason: string | null;
  message: string | null;
  delivery: Delivery;
  progress: Progress | null;
};

/** What is sent to have a notebook run: the server's catalog fills in what is left out. */
export type Submission = {
  /** The notebook's path, relative to the server's root. */
  notebook: string;
  /** Refuse the submission unless the file on disk has this digest (hexadecimal SHA-256). */
  expected_sha256?: string;
};

/** Whether nothing more happens to a job: it has ended and its result is where it will be. */
export function isSettled(job: Job): boolean {
  return (
    ['succeeded', 'failed', 'cancelled'].includes(job.state) &&
    job.delivery.state !== 'pending'
  );
}
