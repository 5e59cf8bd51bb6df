/**
 * What other extensions may ask of this one: submit notebooks, and follow the jobs.
 */
import { Token } from '@lumino/coreutils';
import type { ISignal } from '@lumino/signaling';

import type { Changes, CopyProgress, Job, Submission } from './jobs/job';
import type { INotebookSource } from './source';

/** The jobs that this page knows of, kept true by the server's events. */
export interface IJobs {
  /** A job was seen for the first time, or is no longer what it was. */
  readonly changed: ISignal<IJobs, Job>;
  /** A job of this name was deleted, or has to be loaded again. */
  readonly removed: ISignal<IJobs, string>;
  /** This page submitted a job. */
  readonly submitted: ISignal<IJobs, Job>;
  /** A job that this page submitted, or saw unfinished, has ended as `isSettled` says: once each. */
  readonly settled: ISignal<IJobs, Job>;
  /** The files that go along with a submission are being copied. */
  readonly copyProgressed: ISignal<IJobs, CopyProgress>;
  /** What is known of the list itself has changed: the five fields below. */
  readonly conditionChanged: ISignal<IJobs, void>;
  /** Whether the server's list was had once. */
  readonly isLoaded: boolean;
  /** Whether the server is being asked for jobs. */
  readonly isBusy: boolean;
  /** Why the last request for jobs failed; null: it did not. */
  readonly error: unknown;
  /** Whether the server has older jobs than those that are known. */
  readonly hasMore: boolean;
  /** Whether events come: `forbidden` where the server does not let this user have them. */
  readonly feed: 'live' | 'lost' | 'forbidden' | 'unknown';
  /** The jobs that are known, newest first; the array changes in place. */
  readonly all: readonly Job[];
  /** How many jobs have not ended. */
  readonly unfinishedCount: number;
  /** The job of that name as last heard of. */
  get(name: string): Job | undefined;
  /**
   * The job of that name as last heard of, or as the server says.
   *
   * @throws ApiError as all that follow: where the server refused, or could not be reached.
   */
  find(name: string): Promise<Job>;
  /** Send a notebook; each call is one job, but for calls with the same idempotency key. */
  submit(submission: Submission, idempotencyKey?: string): Promise<Job>;
  /** Have a job run again as it was frozen, with changes: a new job. */
  rerun(name: string, changes?: Changes, idempotencyKey?: string): Promise<Job>;
  /** Have a job ended; what it wrote so far is delivered. */
  cancel(name: string): Promise<Job>;
  /** Have a result delivered that was held. */
  deliver(name: string): Promise<Job>;
  /** Have a job forgotten; what runs is stopped. A delivered notebook stays. */
  delete(name: string): Promise<void>;
  /** Ask the server for its newest jobs, after events may have been missed; see `error`. */
  refresh(): Promise<void>;
  /** Ask for older jobs, for many of them if somebody searches; see `error`. */
  loadMore(isSearch?: boolean): Promise<void>;
}

/** The token under which `IJobs` is provided. */
export const IJobs = new Token<IJobs>(
  'jupyter-to-job:IJobs',
  'Submits notebooks as jobs and follows the jobs of this server.'
);

/** Asks what a job needs to know, and submits it. */
export interface ISubmitDialog {
  /** Ask in the dialog; resolves to the job, or to null if the user thought better of it. */
  ask(source: INotebookSource): Promise<Job | null>;
  /**
   * Submit without asking, with the choices that the source comes with.
   *
   * @throws ApiError where the server refused, or could not be reached.
   */
  submit(source: INotebookSource): Promise<Job>;
  /**
   * Submit without asking, with what was chosen for this notebook the last time.
   *
   * @throws ApiError where the server refused, or could not be reached.
   */
  submitAgain(source: INotebookSource): Promise<Job>;
  /** Have the catalog at hand before anybody asks; never fails. */
  preloadCatalog(): Promise<void>;
}

/** The token under which `ISubmitDialog` is provided. */
export const ISubmitDialog = new Token<ISubmitDialog>(
  'jupyter-to-job:ISubmitDialog',
  'Asks what a job needs to know, and submits it.'
);
