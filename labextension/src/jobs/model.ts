/**
 * The model of the job list. It learns of jobs from events, from answers to its own requests, and
 * from pages of the server's list, in any order.
 */
import { UUID } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';

import type { Page } from '../api';
import type { FeedState, IJobs } from '../tokens';
import { type IJobsApi, isNotFound, type JobsQuery } from './client';
import { EventOrder } from './eventOrder';
import { searchText } from './filter';
import { GroupLoads } from './groupLoads';
import {
  type Changes,
  type ClusterEvent,
  contentOf,
  type CopyProgress,
  type EndCheck,
  isFinal,
  isSettled,
  isSuccessor,
  type Job,
  type Submission
} from './job';
import { findNewestJob } from './newestJob';
import { createEndCheck, OrderedJobs, sortKey } from './orderedJobs';
import { loadUnfinished, MAX_PAGE_SIZE, PAGE_SIZE, pageSizeFor } from './pages';
import { PendingSweeps } from './pendingSweeps';
import { RETRY_DELAYS_MS, sendWithRetries, UnansweredKeys } from './retries';
import type { SweepSubmission, SweptJobs } from './sweep';

/** Stores the jobs that this page has loaded. */
export class Jobs implements IJobs {
  /** @param retryDelays delays before sending an unanswered submission again, in milliseconds */
  constructor(
    private readonly _client: IJobsApi,
    private readonly _retryDelays: readonly number[] = RETRY_DELAYS_MS
  ) {}

  /** Tells which answers are outdated. */
  readonly order = new EventOrder();
  readonly changed = new Signal<this, Job>(this);
  readonly removed = new Signal<this, string>(this);
  readonly submitted = new Signal<this, Job>(this);
  readonly sweepSubmitted = new Signal<this, SweptJobs>(this);
  readonly settled = new Signal<this, Job>(this);
  readonly copyProgressed = new Signal<this, CopyProgress>(this);
  readonly conditionChanged = new Signal<this, void>(this);
  readonly pendingSweeps = new PendingSweeps();
  isLoaded = false;
  error: unknown = null;

  get all(): readonly Job[] {
    return this._jobs.list;
  }

  get unfinishedCount(): number {
    return this._jobs.unfinishedCount;
  }

  get isBusy(): boolean {
    return this._requestCount > 0;
  }

  get hasMore(): boolean {
    return this._cursor !== null;
  }

  get feed(): FeedState {
    return this._feed;
  }

  set feed(feed: FeedState) {
    if (feed !== this._feed) {
      this._feed = feed;
      this._unbrokenTo ??= this._jobs.newestKey;
      this.conditionChanged.emit();
    }
  }

  get(name: string): Job | undefined {
    return this._jobs.get(name);
  }

  getDistinctParameters(job: Job): readonly string[] {
    return this._jobs.distinctParameters.namesOf(job);
  }

  async find(name: string): Promise<Job> {
    return (
      this.get(name) ?? this._requestJob(name, () => this._client.get(name))
    );
  }

  async getEvents(name: string): Promise<ClusterEvent[] | null> {
    return (await this._requestJob(name, () => this._client.get(name))).events;
  }

  getNewestOf(notebook: string): Job | undefined {
    return this.all.find(job => job.notebook === notebook);
  }

  findNewestOf(notebook: string, hasResult = false): Promise<Job | null> {
    return findNewestJob(this, this._client, notebook, hasResult);
  }

  submit(
    submission: Submission,
    idempotencyKey: string = UUID.uuid4(),
    hadEnded?: EndCheck
  ): Promise<Job> {
    const send = () => this._client.submit(submission, idempotencyKey);
    return this._create(
      () => sendWithRetries(send, this._retryDelays),
      hadEnded
    );
  }

  submitSweep(
    submission: SweepSubmission,
    idempotencyKey: string = UUID.uuid4()
  ): Promise<SweptJobs> {
    const sentAt = this.order.now;
    const send = () => this._client.submitSweep(submission, idempotencyKey);
    return this.pendingSweeps.track(submission.group, this.all, async () => {
      const swept = await sendWithRetries(send, this._retryDelays);
      this.sweepSubmitted.emit(swept);
      swept.jobs.forEach(job => this._add(job, sentAt));
      return swept;
    });
  }

  loadGroup(group: string): Promise<void> {
    return this._groups.load(group);
  }

  rerun(
    name: string,
    changes: Changes = {},
    idempotencyKey?: string
  ): Promise<Job> {
    const send = (key: string) =>
      sendWithRetries(
        () => this._client.rerun(name, changes, key),
        this._retryDelays
      );
    const hadEnded = createEndCheck(this.all);
    return this._create(() =>
      this._rerunKeys.send([name, changes], idempotencyKey, send, hadEnded)
    );
  }

  cancel(name: string): Promise<Job> {
    return this._requestJob(name, () => this._client.cancel(name));
  }

  deliver(name: string): Promise<Job> {
    return this._requestJob(name, () => this._client.deliver(name));
  }

  async delete(name: string): Promise<void> {
    await this._removeIfNotFound(name, () => this._client.delete(name));
    this.remove(name);
  }

  /** Load the newest jobs. Calls during a refresh share one further refresh after it. */
  refresh(): Promise<void> {
    this._nextRefresh ??= this._refresh.then(() => {
      this._nextRefresh = null;
      return this._trackLoading(() => this._loadNewest());
    });
    this._refresh = this._nextRefresh;
    return this._nextRefresh;
  }

  loadMore(isSearch = false): Promise<void> {
    this._pageLoad ??= this._trackLoading(() =>
      this._loadNextPage(isSearch)
    ).finally(() => {
      this._pageLoad = null;
    });
    return this._pageLoad;
  }

  /**
   * Store a job that was loaded. A state from before the job's known end is dropped, and so is a
   * job that was deleted since.
   *
   * @param sentAt what `order.now` was when it was asked for
   */
  update(job: Job, sentAt = 0): void {
    this.order.note(job.name);
    this._store(job, sentAt);
  }

  /** Remove a deleted job. What is asked for later under its name is another job. */
  remove(name: string): void {
    this.order.noteDeletion(name);
    if (this._jobs.delete(name)) {
      this.removed.emit(name);
    }
  }

  private _store(job: Job, sentAt: number): void {
    const previous = this._previousOf(job);
    const wasSettled = previous !== undefined && isSettled(previous);
    const isDeleted = this.order.wasDeletedSince(job.name, sentAt);
    if (isDeleted || (wasSettled && !isSettled(job))) {
      return;
    }
    if (previous !== undefined && contentOf(previous) === contentOf(job)) {
      return;
    }
    this._jobs.set(job);
    searchText(job); // It is kept: a search must not compute it for 10,000 jobs at once.
    this.changed.emit(job);
    if (previous !== undefined && !wasSettled && isSettled(job)) {
      this._emitSettled(job);
    }
  }

  /** What is known of a job; undefined if what has its name is a deleted job. */
  private _previousOf(job: Job): Job | undefined {
    const known = this.get(job.name);
    return known !== undefined && isSuccessor(job, known) ? undefined : known;
  }

  /**
   * Store a job from an answer, unless an event of that job arrived after the request was sent.
   * What the cluster says is for whoever asked: no event tells of its changes.
   */
  private _storeResponse(job: Job, sentAt: number): void {
    if (!this.order.hasChangedSince(job.name, sentAt)) {
      this._store(job.events === null ? job : { ...job, events: null }, sentAt);
    }
  }

  private _emitSettled(job: Job): void {
    if (!this._settled.has(sortKey(job))) {
      this._settled.add(sortKey(job));
      this.settled.emit(job);
    }
  }

  /** Send what makes a job; `hadEnded` as for `submit`. */
  private async _create(
    send: () => Promise<Job>,
    hadEnded?: EndCheck
  ): Promise<Job> {
    const sentAt = this.order.now;
    const response = await send();
    if (!hadEnded?.(response)) {
      this.submitted.emit(response);
    }
    return this._add(response, sentAt);
  }

  /** Store a job that was created, unless an event has told more of it already. */
  private _add(response: Job, sentAt: number): Job {
    this.order.note(response.name); // A list that was requested before does not have the job.
    const stored = this._previousOf(response);
    if (stored === undefined) {
      this._store(response, sentAt);
    }
    const job = stored ?? response;
    if (isSettled(job)) {
      // An event overtook the answer, or the server knew the key: `_store` has emitted nothing.
      this._emitSettled(job);
    }
    return job;
  }

  /** Send a request about one job and store the answer. */
  private async _requestJob(
    name: string,
    request: () => Promise<Job>
  ): Promise<Job> {
    const sentAt = this.order.now;
    const job = await this._removeIfNotFound(name, request);
    this._storeResponse(job, sentAt);
    return job;
  }

  private async _removeIfNotFound<T>(
    name: string,
    request: () => Promise<T>
  ): Promise<T> {
    const sentAt = this.order.now;
    try {
      return await request();
    } catch (error) {
      if (isNotFound(error) && !this.order.hasChangedSince(name, sentAt)) {
        this.remove(name);
      }
      throw error;
    }
  }

  /** Keep `isBusy`, `error` and `isLoaded` up to date while jobs are loaded. */
  private async _trackLoading(load: () => Promise<void>): Promise<void> {
    this._requestCount += 1;
    this.conditionChanged.emit();
    try {
      await load();
      this.error = null;
      this.isLoaded = true;
    } catch (error) {
      this.error = error;
    } finally {
      this._requestCount -= 1;
      this.conditionChanged.emit();
    }
  }

  private async _loadNewest(): Promise<void> {
    const sentAt = this.order.now;
    const wasLive = this.feed === 'live';
    const unbrokenTo = this._unbrokenTo ?? this._jobs.newestKey;
    // Where events may be missing, what the page has is asked for again, as far as one answer goes.
    const isUnbroken = this._unbrokenTo === null;
    const limit = isUnbroken ? PAGE_SIZE : pageSizeFor(this.all.length);
    const page = await this._client.list({ limit });
    const oldest = page.next === null ? '' : sortKey(page.jobs.at(-1)!);
    const overlaps = oldest <= unbrokenTo;
    const listedNames = new Set(page.jobs.map(({ name }) => name));
    for (const job of [...this.all]) {
      const isNewer = this.order.hasChangedSince(job.name, sentAt);
      if (listedNames.has(job.name) || isNewer) {
        continue;
      }
      if (sortKey(job) >= oldest) {
        this.remove(job.name); // It is missing from the page and not older than it: deleted.
      } else if (!overlaps && isFinal(job)) {
        // There may be a gap between the page and this job: load again from the page on.
        this._jobs.delete(job.name);
        this._groups.forget(job.group);
        this.removed.emit(job.name);
      }
    }
    if (!overlaps || page.next === null || !this.isLoaded) {
      this._cursor = page.next;
    }
    page.jobs.forEach(job => this._storeResponse(job, sentAt));
    const [newest] = page.jobs;
    this._unbrokenTo =
      wasLive && this.feed === 'live' ? null : newest ? sortKey(newest) : '';
    if (page.next !== null) {
      await this._loadOlderUnfinished(oldest);
    }
  }

  /** Load unfinished jobs that are older than the first page, which a long list has. */
  private async _loadOlderUnfinished(oldest: string): Promise<void> {
    const sentAt = this.order.now;
    const names = this.all
      .filter(job => !isFinal(job) && sortKey(job) < oldest)
      .map(({ name }) => name);
    for (const name of await loadUnfinished(this._loadPage, names)) {
      if (!this.order.hasChangedSince(name, sentAt)) {
        this.remove(name);
      }
    }
  }

  private readonly _loadPage = async (query: JobsQuery): Promise<Page> => {
    const sentAt = this.order.now;
    const page = await this._client.list(query);
    page.jobs.forEach(job => this._storeResponse(job, sentAt));
    return page;
  };

  private async _loadNextPage(isSearch: boolean): Promise<void> {
    if (this._cursor === null) {
      return;
    }
    const cursor = this._cursor;
    const limit = isSearch ? MAX_PAGE_SIZE : PAGE_SIZE;
    const page = await this._loadPage({ limit, cursor });
    if (cursor === this._cursor) {
      this._cursor = page.next;
    }
  }

  private readonly _jobs = new OrderedJobs();
  /** The sort keys of jobs for which `settled` was emitted. */
  private readonly _settled = new Set<string>();
  private readonly _rerunKeys = new UnansweredKeys();
  private readonly _groups = new GroupLoads(this._loadPage);
  private _cursor: string | null = null;
  /** The key of the newest job above which some may be missing; null while events bring all. */
  private _unbrokenTo: string | null = '';
  private _feed: FeedState = 'unknown';
  private _requestCount = 0;
  private _refresh: Promise<void> = Promise.resolve();
  private _nextRefresh: Promise<void> | null = null;
  private _pageLoad: Promise<void> | null = null;
}
