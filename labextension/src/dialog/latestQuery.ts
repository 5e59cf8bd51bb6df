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
  isPending = false;

  /** Ask this next; `isImmediate` without waiting for further changes. */
  ask(question: Question, isImmediate = false): void {
    this.isPending = true;
    this._latest = { question };
    clearTimeout(this._timer);
    if (isImmediate) {
      void this._runQuery();
    } else {
      this._timer = setTimeout(() => void this._runQuery(), this._debounceMs);
    }
  }

  /** Stop asking, and report no more answers. */
  dispose(): void {
    clearTimeout(this._timer);
    this._isDisposed = true;
  }

  /** Run queries until the latest is answered, which a call during a query leaves to that one. */
  private async _runQuery(): Promise<void> {
    if (this._isRunning) {
      return;
    }
    this._isRunning = true;
    while (this.isPending && !this._isDisposed) {
      clearTimeout(this._timer);
      const latest = this._latest!;
      const [answer, error] = await this._query(latest.question).then(
        value => [value, null] as const,
        (reason: unknown) => [null, reason] as const
      );
      if (latest === this._latest && !this._isDisposed) {
        this.isPending = false;
        try {
          this._onAnswer(answer, error);
        } catch (fault) {
          console.error(fault); // The next question must be asked all the same.
        }
      }
    }
    this._isRunning = false;
  }

  private _latest: { question: Question } | null = null;
  private _isRunning = false;
  private _isDisposed = false;
  private _timer: ReturnType<typeof setTimeout> | undefined;
}
