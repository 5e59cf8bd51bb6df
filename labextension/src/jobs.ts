/**
 * The model behind everything that is shown: the jobs this page has heard of. It thinks and never
 * shows; it hears of jobs from events, from the answers to its own requests, and from one list at
 * the start, in any order.
 */
import { UUID } from '@lumino/coreutils';
import { type ISignal, Signal } from '@lumino/signaling';

import { ApiError, type IClient } from './client';
import { isSettled, type Job, type Submission } from './job';
import type { IJobs } from './tokens';

/** How long to wait before each further try of a submission that got no answer, in milliseconds. */
const RETRY_DELAYS = [500, 2000];

/** The jobs that this page knows of. */
export class Jobs implements IJobs {
  /**
   * @param client the server's REST interface
   * @param retryDelays pauses before sending an unanswered submission again, in milliseconds
   */
  constructor(
    private readonly _client: IClient,
    private readonly _retryDelays: readonly number[] = RETRY_DELAYS
  ) {}

  get changed(): ISignal<IJobs, Job> {
    return this._changed;
  }

  get submitted(): ISignal<IJobs, Job> {
    return this._submitted;
  }

  get settled(): ISignal<IJobs, Job> {
    return this._settled;
  }

  get(name: string): Job | undefined {
    return this._jobs.get(name);
  }

  async submit(submission: Submission): Promise<Job> {
    const answer = await this._send(submission, UUID.uuid4());
    this._submitted.emit(answer);
    const heard = this._jobs.get(answer.name);
    if (heard === undefined) {
      this.observe(answer);
    } else if (isSettled(heard)) {
      // Events overtook the answer, and the end of an unknown job is not told.
      this._settle(heard);
    }
    return heard ?? answer;
  }

  async refresh(): Promise<void> {
    for (const job of await this._client.list()) {
      this.observe(job);
    }
  }

  /** Take note of what the server says about a job; news older than a known end is dropped. */
  observe(job: Job): void {
    const before = this._jobs.get(job.name);
    const ended = before !== undefined && isSettled(before);
    if (ended && !isSettled(job)) {
      return;
    }
    this._jobs.set(job.name, job);
    this._changed.emit(job);
    if (before !== undefined && !ended && isSettled(job)) {
      this._settle(job);
    }
  }

  private _settle(job: Job): void {
    if (!this._told.has(job.name)) {
      this._told.add(job.name);
      this._settled.emit(job);
    }
  }

  /** Send until there is an answer; the key makes sure that a repeated request is no second job. */
  private async _send(submission: Submission, key: string): Promise<Job> {
    for (const delay of this._retryDelays) {
      try {
        return await this._client.submit(submission, key);
      } catch (error) {
        if (!(error instanceof ApiError) || error.failure !== 'unreachable') {
          throw error;
        }
        await new Promise(resolve => setTimeout(resolve, delay));
      }
    }
    return this._client.submit(submission, key);
  }

  private readonly _jobs = new Map<string, Job>();
  private readonly _changed = new Signal<IJobs, Job>(this);
  /** Whose end was told: once is enough. */
  private readonly _told = new Set<string>();
  private readonly _submitted = new Signal<IJobs, Job>(this);
  private readonly _settled = new Signal<IJobs, Job>(this);
}
