/** Runs a query after changes: debounced, and never two at a time. */

/** How long to wait for further changes, in milliseconds. */
const DEBOUNCE_MS = 250;

/** Reports the answer to the latest question only. */
export class LatestQuery<Question, Answer> {
  /**
   * @param query runs the query; may reject
   * @param onAnswer gets the answer to the latest question, or null and the error
   */
  constructor(
    private readonly _query: (question: Question) => Promise<Answer>,
    private readonly _onAnswer: (answer: Answer | null, error: unknown) => void,
    private readonly _debounceMs: number = DEBOUNCE_MS
  ) {}

  /** Whether the answer to the latest question is still missing. */
  get isPending(): boolean {
    return this._pending !== null || this._isRunning;
  }

  /** Ask this next; `isImmediate` without waiting for further changes. */
  ask(question: Question, isImmediate = false): void {
    this._pending = { question };
    clearTimeout(this._timer);
    if (isImmediate) {
      void this._runQuery();
    } else {
      this._timer = setTimeout(() => void this._runQuery(), this._debounceMs);
    }
  }

  /** Stop asking, and report no more answers. */
  dispose(): void {
    this._isDisposed = true;
    clearTimeout(this._timer);
  }

  private async _runQuery(): Promise<void> {
    if (this._isRunning || this._pending === null || this._isDisposed) {
      return; // A running query calls this again when it is answered.
    }
    const { question } = this._pending;
    this._pending = null;
    this._isRunning = true;
    const [answer, error] = await this._query(question).then(
      value => [value, null] as const,
      (reason: unknown) => [null, reason] as const
    );
    this._isRunning = false;
    if (this._isDisposed) {
      return;
    }
    if (this._pending === null) {
      this._onAnswer(answer, error);
    } else {
      void this._runQuery();
    }
  }

  private _pending: { question: Question } | null = null;
  private _isRunning = false;
  private _isDisposed = false;
  private _timer: ReturnType<typeof setTimeout> | undefined;
}
