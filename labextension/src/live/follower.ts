/**
 * Reads what a job writes, from its beginning, and goes on whenever the job's news say that there is
 * more: one request at a time, none while nothing happens, and no byte twice.
 */
import { type ISignal, Signal } from '@lumino/signaling';

import { ApiError } from '../jobs/client';
import { isFinal, type Job } from '../jobs/job';
import type { IJobs } from '../tokens';

/** What comes of one request: where to go on, and whether that was all. */
export type Chunk = { next: number; end: boolean };

/** More of a journal than this is not read from its beginning, in bytes. */
const MAX_BACKLOG = 64 << 20;

/** How much of such a one is read, from its end, in bytes. */
const TAIL_SIZE = 16 << 20;

/** How it goes: reading what is there, waiting for more, all read, or not to be had. */
export type ReadState = 'reading' | 'waiting' | 'ended' | 'lost' | 'gone';

/** What can be seen of a follower, whatever it reads. */
export interface IFollower {
  readonly name: string;
  /** How it goes has changed, or a piece was read. */
  readonly changed: ISignal<IFollower, void>;
  readonly readState: ReadState;
  /** Why it cannot be had; null: it can. */
  readonly error: unknown;
  /** Whether what stands between the first and the last part was left out. */
  readonly isTruncated: boolean;
  /** How much of what there is was read, from 0 to 1. */
  readonly fraction: number;
  /** Read on, as far as there is something; once more if that is already under way. */
  readMore(): Promise<void>;
}

/** Follows one job. */
export class Follower<P extends Chunk> implements IFollower {
  /**
   * @param read asks for what stands from an offset on; negative: from the end
   * @param take gets each piece, in order
   */
  constructor(
    readonly name: string,
    private readonly _jobs: IJobs,
    private readonly _read: (name: string, offset: number) => Promise<P>,
    private readonly _onChunk: (piece: P) => void | Promise<void>
  ) {
    _jobs.changed.connect(this._onJobChanged, this);
    _jobs.removed.connect(this._onJobRemoved, this);
    _jobs.conditionChanged.connect(this._onConditionChanged, this);
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get readState(): ReadState {
    return this._readState;
  }

  get error(): unknown {
    return this._error;
  }

  get isTruncated(): boolean {
    return this._isTruncated;
  }

  get fraction(): number {
    const size = this._jobs.get(this.name)?.journal ?? 0;
    return size === 0 ? 1 : Math.min(this._offset / size, 1);
  }

  async readMore(): Promise<void> {
    this._isRequested = true;
    if (this._isReading || this._readState === 'ended') {
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
    try {
      let chunk: P | null = null;
      do {
        const from = this._offset;
        chunk = await this._read(this.name, this._nextOffset());
        if (this._isDisposed) {
          return;
        }
        await this._onChunk(chunk);
        this._offset = chunk.next;
        this._changed.emit();
        if (chunk.next === from) {
          break;
        }
      } while (!chunk.end && !this._isDisposed && !this._isUpToDate);
      this._error = null;
      this._setReadState(chunk.end ? 'ended' : 'waiting');
    } catch (error) {
      const isGone = error instanceof ApiError && error.code === 'not_found';
      this._error = error;
      this._setReadState(isGone ? 'gone' : 'lost');
    }
  }

  /** Where to read: the middle of what is too long is left out. */
  private _nextOffset(): number {
    const size = this._jobs.get(this.name)?.journal ?? 0;
    if (this._offset > 0 && size - this._offset > MAX_BACKLOG) {
      this._isTruncated = true;
      return -TAIL_SIZE;
    }
    return this._offset;
  }

  /** Whether nothing more is there by what the job's news say; the end has to be read, though. */
  private get _isUpToDate(): boolean {
    const job = this._jobs.get(this.name);
    return job !== undefined && !isFinal(job) && this._offset >= job.journal;
  }

  private _setReadState(reading: ReadState): void {
    this._readState = reading;
    this._changed.emit();
  }

  private _onJobChanged(_: IJobs, job: Job): void {
    if (job.name === this.name) {
      if (job.journal > this._offset || isFinal(job)) {
        void this.readMore();
      }
      this._changed.emit();
    }
  }

  private _onJobRemoved(_: IJobs, name: string): void {
    if (name === this.name && this._readState !== 'ended') {
      void this.readMore();
    }
  }

  /** The list could be had again: so can what a job writes. Or it cannot, which is to be shown. */
  private _onConditionChanged({ error, isBusy }: IJobs): void {
    if (this._readState === 'lost' && error === null && !isBusy) {
      void this.readMore();
    }
    this._changed.emit();
  }

  private _offset = 0;
  private _readState: ReadState = 'reading';
  private _error: unknown = null;
  private _isTruncated = false;
  private _isReading = false;
  private _isRequested = false;
  private _isDisposed = false;
  private readonly _changed = new Signal<this, void>(this);
}
