/**
 * Submits without the dialog, where nothing keeps the key of a submission from one press of a button
 * to the next. Whoever got no answer and presses again gets the same job.
 */
import { ApiError, isUncertain } from '../jobs/client';
import type { Choices, Job } from '../jobs/job';
import type { INotebookSource } from '../source';
import { SubmissionKey } from './submissionKey';

/** A submission of which nobody knows what became. */
type Unanswered = { key: SubmissionKey; asked: string; choices: Choices };

export class UnansweredSubmissions {
  /**
   * The choices of a notebook's unanswered submission, if the same was asked for. The job that it
   * may have become is no source of others: those would make a second one.
   */
  choicesOf(source: INotebookSource): Choices | undefined {
    const earlier = this._unanswered.get(source.path);
    return earlier?.asked === askedBy(source) ? earlier.choices : undefined;
  }

  /** Submit a notebook, with the key of its last submission if nobody knows what became of that. */
  async send(source: INotebookSource, choices: Choices): Promise<Job> {
    const { path } = source;
    const earlier = this._unanswered.get(path);
    const key = earlier?.key ?? new SubmissionKey();
    this._unanswered.delete(path);
    try {
      const id = key.of([source.toSubmission(), choices]);
      return await source.submit(choices, id);
    } catch (error) {
      if (isUncertain(error)) {
        this._unanswered.set(path, { key, asked: askedBy(source), choices });
      } else if (earlier !== undefined && isConflict(error)) {
        // The notebook has changed since: the job that has the key is another one.
        return this.send(source, choices);
      }
      throw error;
    }
  }

  /** By the path of their notebook. */
  private readonly _unanswered = new Map<string, Unanswered>();
}

/** What somebody asks for who submits, without what is remembered of earlier jobs. */
function askedBy(source: INotebookSource): string {
  return JSON.stringify([source.toSubmission(), source.initialChoices]);
}

function isConflict(error: unknown): boolean {
  return error instanceof ApiError && error.code === 'conflict';
}
