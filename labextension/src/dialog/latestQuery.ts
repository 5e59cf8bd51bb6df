/** Asks again after every change: not at every keystroke, and never twice at a time. */

/** How long a form must rest before the question is asked, in milliseconds. */
const DEBOUNCE_MS = 250;

/** Keeps an answer that belongs to the newest question. */
export class LatestQuery<Question, Answer> {
  /**
   * @param ask asks; may reject
   * @param told hears the answer to the newest question, or why there is none
   */
  constructor(
    private readonly _query: (question: Question) => Promise<Answer>,
    private readonly _onAnswer: (answer: Answer | null, error: unknown) => void,
    private readonly _debounceMs: number = DEBOUNCE_MS
  ) {}

  /** Whether the last answer is not that of the newest question. */
  get isPending(): boolean {
    return this._pending !== null || this._isRunning;
  }

  /** Ask this next; `now` without waiting for more changes. */
  ask(question: Question, isImmediate = false): void {
    this._pending = { question };
    clearTimeout(this._timer);
    if (isImmediate) {
      void this._runQuery();
    } else {
      this._timer = setTimeout(() => void this._runQuery(), this._debounceMs);
    }
  }

  /** Ask no more, and tell of no answer. */
  dispose(): void {
    this._isDisposed = true;
    clearTimeout(this._timer);
  }

  private async _runQuery(): Promise<void> {
    if (this._isRunning || this._pending === null || this._isDisposed) {
      return; // What is under way comes back here when it is answered.
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
