/** The sweeps that this page is sending: until their answers it knows only some of their jobs. */
export class PendingSweeps {
  /** Resolves when no sweep is being sent any more; null if none is. */
  get end(): Promise<void> | null {
    return this._end;
  }

  /** Send a sweep; it is pending until its answer is stored. */
  track<T>(send: () => Promise<T>): Promise<T> {
    const sweep = send();
    const end = Promise.allSettled([this._end, sweep]).then(() => {
      if (this._end === end) {
        this._end = null;
      }
    });
    this._end = end;
    return sweep;
  }

  private _end: Promise<void> | null = null;
}
