/**
 * What other extensions may ask of this one: submit notebooks, and follow the jobs.
 */
import { Token } from '@lumino/coreutils';
import type { ISignal } from '@lumino/signaling';

import type { Job, Submission } from './job';

/** The jobs that this page knows of, kept true by the server's events. */
export interface IJobs {
  /** A job was seen for the first time, or is no longer what it was. */
  readonly changed: ISignal<IJobs, Job>;
  /** This page submitted a job. */
  readonly submitted: ISignal<IJobs, Job>;
  /** A job that this page saw unfinished has ended and its delivery is decided: once per job. */
  readonly settled: ISignal<IJobs, Job>;
  /** The job of that name as last heard of. */
  get(name: string): Job | undefined;
  /**
   * Send a notebook as it is on the server's disk; each call is one job.
   *
   * @throws ApiError where the server refused, or could not be reached.
   */
  submit(submission: Submission): Promise<Job>;
  /** Ask the server once for its newest jobs: at the start, and after events may have been missed. */
  refresh(): Promise<void>;
}

/** The token under which `IJobs` is provided. */
export const IJobs = new Token<IJobs>(
  'jupyter-to-job:IJobs',
  'Submits notebooks as jobs and follows the jobs of this server.'
);
