/** The interfaces that other extensions can use: submit notebooks and follow jobs. */
import { Token } from '@lumino/coreutils';
import type { ISignal } from '@lumino/signaling';

import type {
  Changes,
  ClusterEvent,
  CopyProgress,
  EndCheck,
  Job,
  Submission
} from './jobs/job';
import type { PendingSweeps } from './jobs/pendingSweeps';
import type { SweepSubmission, SweptJobs } from './jobs/sweep';
import type { INotebookSource } from './source';

/** The state of the event stream; `forbidden` if the server does not let this user subscribe. */
export type FeedState = 'live' | 'lost' | 'forbidden' | 'unknown';

/** The jobs that this page knows, kept up to date by the server's events. */
export interface IJobs {
  /** A job is new to this page, or has changed. */
  readonly changed: ISignal<IJobs, Job>;
  /** The job of this name was deleted, or has to be loaded again. */
  readonly removed: ISignal<IJobs, string>;
  /** This page submitted a job. Silent where the caller of `submit` submits anew (see there). */
  readonly submitted: ISignal<IJobs, Job>;
  /** This page submitted several jobs of a notebook at once, for which `submitted` is silent. */
  readonly sweepSubmitted: ISignal<IJobs, SweptJobs>;
  /**
   * A job that this page submitted or saw unfinished is settled (see `isSettled`). Emitted once a
   * job.
   */
  readonly settled: ISignal<IJobs, Job>;
  /** The server has copied more of a submission's input files. */
  readonly copyProgressed: ISignal<IJobs, CopyProgress>;
  /** One of the five fields below has changed. */
  readonly conditionChanged: ISignal<IJobs, void>;
  /** The sweeps that this page is sending. */
  readonly pendingSweeps: Pick<PendingSweeps, 'endFor'>;
  /** Whether the job list was loaded at least once. */
  readonly isLoaded: boolean;
  /** Whether a request for the job list is in progress. */
  readonly isBusy: boolean;
  /** The error of the last request for the job list; null if it succeeded. */
  readonly error: unknown;
  /** Whether the server has older jobs that are not loaded yet. */
  readonly hasMore: boolean;
  readonly feed: FeedState;
  /** The loaded jobs, newest first. The array changes in place. */
  readonly all: readonly Job[];
  /** The number of jobs that have not ended. */
  readonly unfinishedCount: number;
  /** The loaded job of that name. */
  get(name: string): Job | undefined;
  /** The names of a job's parameters in which the loaded jobs of its notebook differ. */
  getDistinctParameters(job: Job): readonly string[];
  /**
   * The loaded job of that name, or else the server's answer.
   *
   * @throws ApiError (as all methods below) if the server refuses or cannot be reached.
   */
  find(name: string): Promise<Job>;
  /** What the cluster recorded of a job lately, the latest last; null if that is not known. */
  getEvents(name: string): Promise<ClusterEvent[] | null>;
  /** The newest job of a notebook among the loaded jobs. */
  getNewestOf(notebook: string): Job | undefined;
  /**
   * The newest job of a notebook, loaded or not; null if it has none.
   *
   * @param hasResult whether its result must be delivered
   */
  findNewestOf(notebook: string, hasResult?: boolean): Promise<Job | null>;
  /**
   * Submit a notebook. Each call makes one job, except for calls with the same idempotency key.
   *
   * @param hadEnded whether the answer is a job that had ended before: then `submitted` is silent,
   *   and the caller submits anew; left out by callers that take any answer
   */
  submit(
    submission: Submission,
    idempotencyKey?: string,
    hadEnded?: EndCheck
  ): Promise<Job>;
  /** Submit several jobs of a notebook in one group. The same idempotency key makes no new ones. */
  submitSweep(
    submission: SweepSubmission,
    idempotencyKey?: string
  ): Promise<SweptJobs>;
  /** Load all jobs of a group, once: from then on events keep them up to date. */
  loadGroup(group: string): Promise<void>;
  /**
   * Run a job again as it was frozen, with changes. This makes a new job. Called again after an
   * answer was lost, it is the same job.
   */
  rerun(name: string, changes?: Changes, idempotencyKey?: string): Promise<Job>;
  /** Cancel a job. What it wrote so far is delivered. */
  cancel(name: string): Promise<Job>;
  /** Deliver a held result. */
  deliver(name: string): Promise<Job>;
  /** Delete a job, and stop it if it runs. A delivered notebook stays. */
  delete(name: string): Promise<void>;
  /**
   * Load the newest jobs, for example after events may have been missed. Failures go to `error`.
   */
  refresh(): Promise<void>;
  /** Load a page of older jobs, a larger one for a search. Failures go to `error`. */
  loadMore(isSearch?: boolean): Promise<void>;
}

/** The token that provides `IJobs`. */
export const IJobs = new Token<IJobs>(
  'jupyter-to-job:IJobs',
  'Submits notebooks as jobs and follows the jobs of this server.'
);

/** Submits notebooks, with or without the dialog. */
export interface ISubmitDialog {
  /** Open the dialog; resolves to the job, of several to the first, or to null if cancelled. */
  ask(source: INotebookSource): Promise<Job | null>;
  /**
   * Submit without the dialog, with the source's initial choices. Called again after an answer was
   * lost, it is the same job, unless minutes have passed and the page has seen that one end.
   *
   * @throws ApiError if the server refuses or cannot be reached.
   */
  submit(source: INotebookSource): Promise<Job>;
  /**
   * Submit without the dialog, with what was chosen for this notebook the last time. Called again
   * after an answer was lost, it is the same job, unless minutes have passed and the page has seen
   * that one end.
   *
   * @throws ApiError if the server refuses or cannot be reached.
   */
  submitAgain(source: INotebookSource): Promise<Job>;
}

/** The token that provides `ISubmitDialog`. */
export const ISubmitDialog = new Token<ISubmitDialog>(
  'jupyter-to-job:ISubmitDialog',
  'Asks what a job needs to know, and submits it.'
);
