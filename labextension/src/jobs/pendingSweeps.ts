/** Tells which ends of jobs may be those of a sweep that is only being sent. */
import type { Job } from './job';

/** The sweeps that this page is sending: until their answers it knows only some of their jobs. */
export class PendingSweeps {
  /** Resolves when no sweep is being sent any more; null if none can have jobs in the group. */
  endFor(group: string): Promise<void> | null {
    return this._otherGroups?.has(group) ? null : this._end;
  }

  /**
   * Send a sweep; it is pending until its answer is stored.
   *
   * @param group the group that the sweep names; the server makes one otherwise
   * @param jobs the jobs that the page knows
   */
  track<T>(
    group: string | undefined,
    jobs: readonly Job[],
    send: () => Promise<T>
  ): Promise<T> {
    this._otherGroups ??= new Set(jobs.map(job => job.group));
    this._otherGroups.delete(group ?? null);
    const sweep = send();
    const end = Promise.allSettled([this._end, sweep]).then(([, answer]) => {
      if (this._end === end) {
        this._end = null;
        if (answer.status === 'fulfilled') {
          this._otherGroups = null; // a failed sweep may have jobs, and may be sent again
        }
      }
    });
    this._end = end;
    return sweep;
  }

  private _end: Promise<void> | null = null;
  /** The groups that had jobs before the first of these sweeps was sent, and that none names. */
  private _otherGroups: Set<string | null> | null = null;
}
