/**
 * The model behind everything that is shown: the jobs this page has heard of. It thinks and never
 * shows; it hears of jobs from events, from the answers to its own requests, and from pages of the
 * server's list, in any order.
 */
import { JSONExt, type ReadonlyJSONValue, UUID } from '@lumino/coreutils';
import { type ISignal, Signal } from '@lumino/signaling';

import type { IJobs } from '../tokens';
import { ApiError, type IClient } from './client';
import {
  type Changes,
  type Copying,
  isFinal,
  isSettled,
  type Job,
  type Submission
} from './job';
import { age, OrderedJobs } from './orderedJobs';

/** How long to wait before each further try of a submission that got no answer, in milliseconds. */
const RETRY_DELAYS = [500, 2000];

/** Jobs of a page. */
const PAGE = 50;

/** Jobs of a page while somebody searches: as many as the server gives at a time. */
const LONG_PAGE = 500;

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

  get removed(): ISignal<IJobs, string> {
    return this._removed;
  }

  get submitted(): ISignal<IJobs, Job> {
    return this._submitted;
  }

  get settled(): ISignal<IJobs, Job> {
    return this._settled;
  }

  get copying(): ISignal<IJobs, Copying> {
    return this._copying;
  }

  get conditionChanged(): ISignal<IJobs, void> {
    return this._conditionChanged;
  }

  get all(): readonly Job[] {
    return this._known.list;
  }

  get unfinished(): number {
    return this._unfinished.size;
  }

  get isLoaded(): boolean {
    return this._isLoaded;
  }

  get isBusy(): boolean {
    return this._asking > 0;
  }

  get error(): unknown {
    return this._error;
  }

  get hasMore(): boolean {
    return this._cursor !== null;
  }

  /** Whether events come; `barred`: they never will, the server does not let this user listen. */
  get feed(): 'live' | 'lost' | 'barred' | 'unknown' {
    return this._feed;
  }

  set feed(feed: 'live' | 'lost' | 'barred' | 'unknown') {
    if (feed !== this._feed) {
      this._feed = feed;
      this._conditionChanged.emit();
    }
  }

  get(name: string): Job | undefined {
    return this._known.get(name);
  }

  async find(name: string): Promise<Job> {
    return this.get(name) ?? this._about(name, () => this._client.get(name));
  }

  submit(
    submission: Submission,
    idempotencyKey: string = UUID.uuid4()
  ): Promise<Job> {
    return this._add(() => this._client.submit(submission, idempotencyKey));
  }

  rerun(
    name: string,
    changes: Changes = {},
    idempotencyKey: string = UUID.uuid4()
  ): Promise<Job> {
    return this._add(() => this._client.rerun(name, changes, idempotencyKey));
  }

  cancel(name: string): Promise<Job> {
    return this._about(name, () => this._client.cancel(name));
  }

  deliver(name: string): Promise<Job> {
    return this._about(name, () => this._client.deliver(name));
  }

  async delete(name: string): Promise<void> {
    await this._unlessGone(name, () => this._client.delete(name));
    this.forget(name);
  }

  /** Ask for the newest jobs; while that is under way, at most one more time after it. */
  refresh(): Promise<void> {
    this._next ??= this._refreshing.then(() => {
      this._next = null;
      return this._work(() => this._catchUp());
    });
    this._refreshing = this._next;
    return this._next;
  }

  more(isSearch = false): Promise<void> {
    this._loading ??= this._work(() => this._loadMore(isSearch)).finally(() => {
      this._loading = null;
    });
    return this._loading;
  }

  /** Take note of what the server says about a job; news older than a known end is dropped. */
  observe(job: Job): void {
    this._heard.set(job.name, ++this._clock);
    this._note(job);
  }

  /** A job was deleted. Names are not used again: whatever is heard of it later is older. */
  forget(name: string): void {
    this._gone.add(name);
    this._heard.delete(name);
    this._unfinished.delete(name);
    if (this._known.delete(name)) {
      this._removed.emit(name);
    }
  }

  /** Pass on how a submission's files are being copied. */
  tellCopying(copying: Copying): void {
    this._copying.emit(copying);
  }

  private _note(job: Job): void {
    const before = this.get(job.name);
    const ended = before !== undefined && isSettled(before);
    if (this._gone.has(job.name) || (ended && !isSettled(job))) {
      return;
    }
    if (before !== undefined && isSame(before, job)) {
      return;
    }
    this._known.set(job);
    if (isFinal(job)) {
      this._unfinished.delete(job.name);
    } else {
      this._unfinished.add(job.name);
    }
    this._changed.emit(job);
    if (before !== undefined && !ended && isSettled(job)) {
      this._settle(job);
    }
  }

  /** Take note of an answer, unless events of that job came after the question. */
  private _noteAnswer(job: Job, asked: number): void {
    if ((this._heard.get(job.name) ?? 0) <= asked) {
      this._note(job);
    }
  }

  private _settle(job: Job): void {
    if (!this._told.has(job.name)) {
      this._told.add(job.name);
      this._settled.emit(job);
    }
  }

  /** Have a job made, and take note of it. */
  private async _add(send: () => Promise<Job>): Promise<Job> {
    const answer = await this._send(send);
    this._submitted.emit(answer);
    const heard = this.get(answer.name);
    if (heard === undefined) {
      this._note(answer);
    }
    const job = heard ?? answer;
    if (isSettled(job)) {
      // Events overtook the answer, or it was sent before: the end of an unknown job is not told.
      this._settle(job);
    }
    return job;
  }

  /** Send until there is an answer; its key makes sure that a repeated request is no second job. */
  private async _send(send: () => Promise<Job>): Promise<Job> {
    for (const delay of this._retryDelays) {
      try {
        return await send();
      } catch (error) {
        if (!(error instanceof ApiError) || error.failure !== 'unreachable') {
          throw error;
        }
        await new Promise(resolve => setTimeout(resolve, delay));
      }
    }
    return send();
  }

  /** Ask about one job, and take note of the answer. */
  private async _about(name: string, ask: () => Promise<Job>): Promise<Job> {
    const asked = this._clock;
    const job = await this._unlessGone(name, ask);
    this._noteAnswer(job, asked);
    return job;
  }

  private async _unlessGone<T>(
    name: string,
    ask: () => Promise<T>
  ): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      if (error instanceof ApiError && error.code === 'not_found') {
        this.forget(name);
      }
      throw error;
    }
  }

  /** Do what asks for jobs, and know how that went. */
  private async _work(work: () => Promise<void>): Promise<void> {
    this._asking += 1;
    this._conditionChanged.emit();
    try {
      await work();
      this._error = null;
      this._isLoaded = true;
    } catch (error) {
      this._error = error;
    } finally {
      this._asking -= 1;
      this._conditionChanged.emit();
    }
  }

  private async _catchUp(): Promise<void> {
    const asked = this._clock;
    const page = await this._client.page({ limit: PAGE });
    const overlaps = page.jobs.some(({ name }) => this.get(name) !== undefined);
    const oldest = page.next === null ? '' : age(page.jobs.at(-1)!);
    const listed = new Set(page.jobs.map(({ name }) => name));
    for (const job of [...this.all]) {
      const isHeard = (this._heard.get(job.name) ?? 0) > asked;
      // What is not listed although it is not older is gone. Without an overlap nobody knows what
      // lies between: the list begins anew.
      if (
        !listed.has(job.name) &&
        !isHeard &&
        (age(job) >= oldest || !overlaps)
      ) {
        this._lose(job, age(job) >= oldest);
      }
    }
    if (!overlaps || page.next === null || !this._isLoaded) {
      this._cursor = page.next;
    }
    page.jobs.forEach(job => this._noteAnswer(job, asked));
    if (page.next !== null) {
      await this._catchUpOlder(oldest);
    }
  }

  /** Ask for the unfinished jobs that are older than the first page: a long list has some. */
  private async _catchUpOlder(oldest: string): Promise<void> {
    const asked = this._clock;
    const open = [...this._unfinished].filter(
      name => age(this.get(name)!) < oldest
    );
    const state = 'queued,starting,running';
    const { jobs } = await this._client.page({ state, limit: LONG_PAGE });
    jobs.forEach(job => this._noteAnswer(job, asked));
    const listed = new Set(jobs.map(({ name }) => name));
    for (const name of open.filter(each => !listed.has(each))) {
      await this._about(name, () => this._client.get(name)).catch(error => {
        if (this.get(name) !== undefined) {
          throw error;
        }
      });
    }
  }

  private async _loadMore(isSearch: boolean): Promise<void> {
    if (this._cursor === null) {
      return;
    }
    const cursor = this._cursor;
    const asked = this._clock;
    const limit = isSearch ? LONG_PAGE : PAGE;
    const page = await this._client.page({ limit, cursor });
    if (cursor === this._cursor) {
      this._cursor = page.next;
    }
    page.jobs.forEach(job => this._noteAnswer(job, asked));
  }

  /** Show a job no more: because it was deleted, or because it has to be loaded again. */
  private _lose(job: Job, isDeleted: boolean): void {
    if (isDeleted) {
      this.forget(job.name);
    } else if (isFinal(job) && this._known.delete(job.name)) {
      this._removed.emit(job.name);
    }
  }

  private readonly _known = new OrderedJobs();
  private readonly _unfinished = new Set<string>();
  private readonly _gone = new Set<string>();
  /** Whose end was told: once is enough. */
  private readonly _told = new Set<string>();
  /** Counts what events told; of each job, the count at its last event. */
  private _clock = 0;
  private readonly _heard = new Map<string, number>();
  private _cursor: string | null = null;
  private _feed: 'live' | 'lost' | 'barred' | 'unknown' = 'unknown';
  private _isLoaded = false;
  private _asking = 0;
  private _error: unknown = null;
  private _refreshing: Promise<void> = Promise.resolve();
  private _next: Promise<void> | null = null;
  private _loading: Promise<void> | null = null;
  private readonly _changed = new Signal<IJobs, Job>(this);
  private readonly _removed = new Signal<IJobs, string>(this);
  private readonly _submitted = new Signal<IJobs, Job>(this);
  private readonly _settled = new Signal<IJobs, Job>(this);
  private readonly _copying = new Signal<IJobs, Copying>(this);
  private readonly _conditionChanged = new Signal<IJobs, void>(this);
}

function isSame(one: Job, other: Job): boolean {
  return JSONExt.deepEqual(
    one as unknown as ReadonlyJSONValue,
    other as unknown as ReadonlyJSONValue
  );
}
