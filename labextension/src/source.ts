/** What a dialog is about: a notebook, and what it takes to have it run. */
import type { Choices, Job, Submission } from './jobs/job';

/** A notebook that stands ready to be sent. */
export interface INotebookSource {
  /** Its path, relative to the server's root: what choices are remembered by. */
  readonly path: string;
  /** What is to be known about what will run, if anything. */
  readonly note: string | null;
  /** Choices to begin with, which count more than remembered ones. */
  readonly initialChoices: Choices;
  /** Resolves when what is on the screen is on disk; rejects if it will not be. */
  readonly ready?: Promise<void>;
  /** Whether it has nothing to do with what was chosen for the notebook the last time. */
  readonly ignoresMemory?: boolean;
  /** Whether files can be chosen to go along. */
  readonly takesFiles: boolean;
  /** What preflight is asked about, once it is ready: the notebook as it is on disk. */
  toSubmission(): Submission;
  /** Have it run, once it is ready; the same key and choices again are the same job. */
  submit(choices: Choices, idempotencyKey: string): Promise<Job>;
}
