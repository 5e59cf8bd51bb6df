/**
 * Submits without the dialog, where nothing keeps the key of a submission from one press of a button
 * to the next. Whoever got no answer and presses again gets the same job, as the message promises.
 * A press that comes later, when the page has seen that job end, is for another one.
 */
import { UUID } from '@lumino/coreutils';

import { hasCode, isUncertain } from '../jobs/client';
import type { Choices, EndCheck, Job } from '../jobs/job';
import { createEndCheck } from '../jobs/orderedJobs';
import type { INotebookSource } from '../source';
import type { IJobs } from '../tokens';

/** How long after a lost answer a press is for the same job, even if that has ended meanwhile. */
const RETRY_PERIOD_MS = 300_000;

/** A submission of a notebook; `request` is what the user asks for, as JSON. */
type Attempt = { key: string; request: string; choices: Choices };

export class UnansweredSubmissions {
  constructor(private readonly _jobs: Pick<IJobs, 'all'>) {}

  /**
   * Submit a notebook when it is ready. If the same request had no answer, its choices are sent again
   * with its key: remembered ones may come from the job that it has made.
   *
   * @param remember gets the choices that count where the source has none; null if none do
   */
  async send(
    source: INotebookSource,
    remember: (() => Promise<Choices>) | null
  ): Promise<Job> {
    const hadEnded = createEndCheck(this._jobs.all);
    await source.ready;
    const { path, initialChoices } = source;
    const parts = [source.toSubmission(), initialChoices, remember !== null];
    const request = JSON.stringify(parts);
    const earlier = this._unanswered.get(path);
    if (earlier?.request === request) {
      const isRetry = Date.now() - earlier.lostAt < RETRY_PERIOD_MS;
      const check = isRetry ? undefined : hadEnded;
      const job = await this._repeat(source, earlier, check);
      if (job !== null) {
        return job;
      }
    }
    const choices = { ...(await remember?.()), ...initialChoices };
    return this._attempt(source, { key: UUID.uuid4(), request, choices });
  }

  /** Make an attempt again; resolves to null if its job had ended or is one of an earlier content. */
  private async _repeat(
    source: INotebookSource,
    earlier: Attempt,
    hadEnded?: EndCheck
  ): Promise<Job | null> {
    try {
      const job = await this._attempt(source, earlier, hadEnded);
      return hadEnded?.(job) ? null : job;
    } catch (error) {
      if (hasCode(error, 'conflict')) {
        return null;
      }
      throw error;
    }
  }

  /** Submit, and keep the attempt if it gets no answer. */
  private async _attempt(
    source: INotebookSource,
    attempt: Attempt,
    hadEnded?: EndCheck
  ): Promise<Job> {
    this._unanswered.delete(source.path);
    try {
      return await source.submit(
        attempt.choices,
        attempt.key,
        undefined,
        hadEnded
      );
    } catch (error) {
      if (isUncertain(error)) {
        const lostAt = Date.now();
        this._unanswered.set(source.path, { ...attempt, lostAt });
      }
      throw error;
    }
  }

  /** By the path of their notebook. */
  private readonly _unanswered = new Map<
    string,
    Attempt & { lostAt: number }
  >();
}
