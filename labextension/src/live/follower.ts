/**
 * Follows a job's journal from its beginning, and reads on when the job has news. There is one
 * request at a time, none while nothing happens, and no byte is read twice.
 */
import { Signal } from '@lumino/signaling';

import { isNotFound } from '../jobs/client';
import { isFinal, type Job } from '../jobs/job';
import type { IJobs } from '../tokens';

/** An answer: the offset to go on from, and whether this was the end. */
export type Chunk = { next: number; end: boolean };

/** A backlog of more bytes than this is not read as a whole. */
const MAX_BACKLOG = 64 << 20;

/** How many bytes of such a backlog are read, from its end. */
const TAIL_SIZE = 16 << 20;

/**
 * The same for a view that was up to date and has not kept up for a while: what is printed now is
 * of more use than all of it. A burst is read whole.
 */
const MAX_LIVE_BACKLOG = 8 << 20;
const MAX_LAG_MS = 2000;
const LIVE_TAIL_SIZE = 1 << 20;

/** The state of reading. `lost`: a request failed. `gone`: the job or its journal was deleted. */
export type ReadState = 'reading' | 'waiting' | 'ended' | 'lost' | 'gone';

/** Follows one job. Only its own methods change its state. */
export class Follower {
  /**
   * @param read reads and processes the chunk at an offset; a negative one counts from the end.
   * `skipped` is how many bytes are left out before it.
   */
  constructor(
    readonly name: string,
    private readonly _jobs: IJobs,
    private readonly _read: (offset: number, skipped: number) => Promise<Chunk>
  ) {
    _jobs.changed.connect(this._onJobChanged, this);
    _jobs.removed.connect(this._onJobRemoved, this);
    _jobs.conditionChanged.connect(this._onConditionChanged, this);
  }

  /** The state has changed, or a chunk was read. */
  readonly changed = new Signal<this, void>(this);

  readState: ReadState = 'reading';

  /** The error of the latest request; null if it succeeded. */
  error: unknown = null;

  /** Whether the middle of the journal was skipped. */
  isTruncated = false;

  /** The share of the journal that was read, from 0 to 1. */
  get fraction(): number {
    const size = this._jobs.get(this.name)?.journal ?? 0;
    return size === 0 ? 1 : Math.min(this._offset / size, 1);
  }

  /** Read all that is there; during a read, once more after it. */
  async readMore(): Promise<void> {
    const hasEnded = this.readState === 'ended' && !this._isBehind;
    this._isRequested = true;
    if (this._isReading || hasEnded) {
      return;
    }
    this._isReading = true;
    while (this._isRequested && !this._isDisposed) {
      this._isRequested = false;
      await this._readToEnd();
    }
    this._isReading = false;
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.disconnectReceiver(this);
    Signal.clearData(this);
  }

  private async _readToEnd(): Promise<void> {
    this._setReadState('reading');
    const began = Date.now();
    try {
      let chunk: Chunk;
      let hasMore: boolean;
      do {
        const isLate = Date.now() - began > MAX_LAG_MS;
        const { offset, skipped } = this._nextPlace(isLate);
        chunk = await this._read(offset, skipped);
        this.isTruncated ||= skipped > 0;
        hasMore = chunk.next !== this._offset && !chunk.end;
        this._offset = chunk.next;
        this.changed.emit();
      } while (hasMore && !this._isDisposed && !this._isUpToDate);
      this.error = null;
      this._wasUpToDate = true;
      this._setReadState(chunk.end ? 'ended' : 'waiting');
    } catch (error) {
      const isGone = isNotFound(error);
      this.error = error;
      this._setReadState(isGone ? 'gone' : 'lost');
    }
  }

  /** The offset to read from; the middle of a large backlog is skipped. */
  private _nextPlace(isLate: boolean): { offset: number; skipped: number } {
    const job = this._jobs.get(this.name);
    const backlog = (job?.journal ?? 0) - this._offset;
    const isLive =
      isLate && this._wasUpToDate && job !== undefined && !isFinal(job);
    const tail = isLive ? LIVE_TAIL_SIZE : TAIL_SIZE;
    return this._offset > 0 &&
      backlog > (isLive ? MAX_LIVE_BACKLOG : MAX_BACKLOG)
      ? { offset: -tail, skipped: backlog - tail }
      : { offset: this._offset, skipped: 0 };
  }

  /** Whether everything is read according to the job. At the end the server decides. */
  private get _isUpToDate(): boolean {
    const job = this._jobs.get(this.name);
    return job !== undefined && !isFinal(job) && this._offset >= job.journal;
  }

  /** Whether there is more than was read, such as a record of the end that came after it. */
  private get _isBehind(): boolean {
    return (this._jobs.get(this.name)?.journal ?? 0) > this._offset;
  }

  private _setReadState(readState: ReadState): void {
    this.readState = readState;
    this.changed.emit();
  }

  private _onJobChanged(_: IJobs, job: Job): void {
    if (job.name === this.name) {
      if (job.journal > this._offset || isFinal(job)) {
        void this.readMore();
      }
      this.changed.emit();
    }
  }

  /** Read on, and ask for the job: it may only have fallen out of the list. */
  private _onJobRemoved(_: IJobs, name: string): void {
    if (name === this.name) {
      this._jobs.find(name).catch(() => undefined);
      if (this.readState !== 'ended') {
        void this.readMore();
      }
    }
  }

  /** A successful request for the list means that reading can succeed, too. */
  private _onConditionChanged({ error, isBusy }: IJobs): void {
    if (this.readState === 'lost' && error === null && !isBusy) {
      void this.readMore();
    }
    this.changed.emit();
  }

  private _offset = 0;
  private _wasUpToDate = false;
  private _isReading = false;
  private _isRequested = false;
  private _isDisposed = false;
}
