/** A notebook that can be submitted, as the dialog sees it. */
import type { Choices, EndCheck, Job, Submission } from './jobs/job';
import type { SweepFields, SweptJobs } from './jobs/sweep';

/** A notebook that is ready to be submitted. */
export interface INotebookSource {
  /** The path, relative to the server's root. Choices are remembered under it. */
  readonly path: string;
  /** The dialog's title; SUBMIT JOB if left out. */
  readonly title?: string;
  /** A note for the user about what will run, or null. */
  readonly note: string | null;
  /** Initial choices, which override remembered ones. */
  readonly initialChoices: Choices;
  /** Where the result goes if neither the user nor a setting says; beside the notebook if left out. */
  readonly resultsFolder?: string;
  /** Resolves when the notebook is saved; rejects if it cannot be. */
  readonly ready?: Promise<void>;
  /** Whether remembered choices are neither used nor updated. */
  readonly ignoresMemory?: boolean;
  /** Whether the server takes over the initial parameters where `submit` gets them unchanged. */
  readonly keepsParameters?: boolean;
  /** Whether input files can be chosen. */
  readonly takesFiles: boolean;
  /** The submission that preflight checks, once `ready` has resolved. */
  toSubmission(): Submission;
  /**
   * Submit it, once `ready` has resolved. The same key and choices again give the same job. Where
   * the job would not run as `plan` says, which preflight has told, it is refused. `hadEnded` goes
   * to `IJobs.submit`.
   */
  submit(
    choices: Choices,
    idempotencyKey: string,
    plan?: Submission['plan'],
    hadEnded?: EndCheck
  ): Promise<Job>;
  /** Submit several jobs of it, in the same way. Left out where there can be only one. */
  submitSweep?(
    choices: Choices,
    fields: SweepFields,
    idempotencyKey: string,
    plan?: Submission['plan']
  ): Promise<SweptJobs>;
}
