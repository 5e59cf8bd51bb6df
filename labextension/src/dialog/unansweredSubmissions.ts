/**
 * Submits without the dialog, where nothing keeps the key of a submission from one press of a button
 * to the next. Whoever got no answer and presses again gets the same job.
 */
import { ApiError, isUncertain } from '../jobs/client';
import type { Choices, Job } from '../jobs/job';
import type { INotebookSource } from '../source';
import { SubmissionKey } from './submissionKey';

export class UnansweredSubmissions {
  /** Submit a notebook, with the key of its last submission if nobody knows what became of that. */
  async send(source: INotebookSource, choices: Choices): Promise<Job> {
    const { path } = source;
    const earlier = this._keys.get(path);
    const key = earlier ?? new SubmissionKey();
    this._keys.delete(path);
    try {
      const id = key.of([source.toSubmission(), choices]);
      return await source.submit(choices, id);
    } catch (error) {
      if (isUncertain(error)) {
        this._keys.set(path, key);
      } else if (earlier !== undefined && isConflict(error)) {
        // The notebook has changed since: the job that has the key is another one.
        return this.send(source, choices);
      }
      throw error;
    }
  }

  /** The keys of unanswered submissions, by the path of their notebook. */
  private readonly _keys = new Map<string, SubmissionKey>();
}

function isConflict(error: unknown): boolean {
  return error instanceof ApiError && error.code === 'conflict';
}
