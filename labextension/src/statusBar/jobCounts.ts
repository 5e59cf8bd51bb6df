/** Counts the jobs that run and wait, for the status bar. */
import { Signal } from '@lumino/signaling';

import { isFinal } from '../jobs/job';
import type { IJobs } from '../tokens';

export class JobCounts {
  constructor(private readonly _jobs: IJobs) {
    _jobs.changed.connect(this._countSoon, this);
    _jobs.removed.connect(this._countSoon, this);
    this._count();
  }

  /** One of the numbers has changed. */
  readonly changed = new Signal<this, void>(this);

  /** Counts the changes. */
  version = 0;

  running = 0;
  waiting = 0;

  /** Count once after the present changes: a page of the list brings hundreds. */
  private _countSoon(): void {
    if (!this._isDue) {
      this._isDue = true;
      queueMicrotask(() => this._count());
    }
  }

  private _count(): void {
    this._isDue = false;
    const unfinished = this._jobs.all.filter(job => !isFinal(job));
    const waiting = unfinished.filter(({ state }) => state === 'queued').length;
    const running = unfinished.length - waiting;
    if (running !== this.running || waiting !== this.waiting) {
      this.running = running;
      this.waiting = waiting;
      this.version += 1;
      this.changed.emit();
    }
  }

  private _isDue = false;
}
