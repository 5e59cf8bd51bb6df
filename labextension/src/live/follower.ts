/**
 * Reads what a job writes, from its beginning, and goes on whenever the job's news say that there is
 * more: one request at a time, none while nothing happens, and no byte twice.
 */
import { type ISignal, Signal } from '@lumino/signaling';

import { ApiError } from '../jobs/client';
import { isFinal, type Job } from '../jobs/job';
import type { IJobs } from '../tokens';

/** What comes of one request: where to go on, and whether that was all. */
export type Piece = { next: number; end: boolean };

/** More of a journal than this is not read from its beginning, in bytes. */
const MOST = 64 << 20;

/** How much of such a one is read, from its end, in bytes. */
const LAST = 16 << 20;

/** How it goes: reading what is there, waiting for more, all read, or not to be had. */
export type Reading = 'reading' | 'waiting' | 'ended' | 'lost' | 'gone';

/** What can be seen of a follower, whatever it reads. */
export interface IFollower {
  readonly name: string;
  /** How it goes has changed, or a piece was read. */
  readonly changed: ISignal<IFollower, void>;
  readonly reading: Reading;
  /** Why it cannot be had; null: it can. */
  readonly error: unknown;
  /** Whether what stands between the first and the last part was left out. */
  readonly isShortened: boolean;
  /** How much of what there is was read, from 0 to 1. */
  readonly share: number;
  /** Read on, as far as there is something; once more if that is already under way. */
  more(): Promise<void>;
}

/** Follows one job. */
export class Follower<P extends Piece> implements IFollower {
  /**
   * @param read asks for what stands from an offset on; negative: from the end
   * @param take gets each piece, in order
   */
  constructor(
    readonly name: string,
    private readonly _jobs: IJobs,
    private readonly _read: (name: string, offset: number) => Promise<P>,
    private readonly _take: (piece: P) => void | Promise<void>
  ) {
    _jobs.changed.connect(this._onChanged, this);
    _jobs.removed.connect(this._onRemoved, this);
    _jobs.conditionChanged.connect(this._onCondition, this);
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get reading(): Reading {
    return this._reading;
  }

  get error(): unknown {
    return this._error;
  }

  get isShortened(): boolean {
    return this._isShortened;
  }

  get share(): number {
    const size = this._jobs.get(this.name)?.journal ?? 0;
    return size === 0 ? 1 : Math.min(this._offset / size, 1);
  }

  async more(): Promise<void> {
    this._isWanted = true;
    if (this._isWorking || this._reading === 'ended') {
      return;
    }
    this._isWorking = true;
    while (this._isWanted && !this._isDisposed) {
      this._isWanted = false;
      await this._work();
    }
    this._isWorking = false;
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.disconnectReceiver(this);
    Signal.clearData(this);
  }

  private async _work(): Promise<void> {
    this._set('reading');
    try {
      let piece: P | null = null;
      do {
        const from = this._offset;
        piece = await this._read(this.name, this._place());
        if (this._isDisposed) {
          return;
        }
        await this._take(piece);
        this._offset = piece.next;
        this._changed.emit();
        if (piece.next === from) {
          break;
        }
      } while (!piece.end && !this._isDisposed && !this._isUpToDate);
      this._error = null;
      this._set(piece.end ? 'ended' : 'waiting');
    } catch (error) {
      const isGone = error instanceof ApiError && error.code === 'not_found';
      this._error = error;
      this._set(isGone ? 'gone' : 'lost');
    }
  }

  /** Where to read: the middle of what is too long is left out. */
  private _place(): number {
    const size = this._jobs.get(this.name)?.journal ?? 0;
    if (this._offset > 0 && size - this._offset > MOST) {
      this._isShortened = true;
      return -LAST;
    }
    return this._offset;
  }

  /** Whether nothing more is there by what the job's news say; the end has to be read, though. */
  private get _isUpToDate(): boolean {
    const job = this._jobs.get(this.name);
    return job !== undefined && !isFinal(job) && this._offset >= job.journal;
  }

  private _set(reading: Reading): void {
    this._reading = reading;
    this._changed.emit();
  }

  private _onChanged(_: IJobs, job: Job): void {
    if (job.name === this.name) {
      if (job.journal > this._offset || isFinal(job)) {
        void this.more();
      }
      this._changed.emit();
    }
  }

  private _onRemoved(_: IJobs, name: string): void {
    if (name === this.name && this._reading !== 'ended') {
      void this.more();
    }
  }

  /** The list could be had again: so can what a job writes. Or it cannot, which is to be shown. */
  private _onCondition({ error, isBusy }: IJobs): void {
    if (this._reading === 'lost' && error === null && !isBusy) {
      void this.more();
    }
    this._changed.emit();
  }

  private _offset = 0;
  private _reading: Reading = 'reading';
  private _error: unknown = null;
  private _isShortened = false;
  private _isWorking = false;
  private _isWanted = false;
  private _isDisposed = false;
  private readonly _changed = new Signal<this, void>(this);
}
