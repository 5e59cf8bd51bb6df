/** Asks again after every change: not at every keystroke, and never twice at a time. */

/** How long a form must rest before the question is asked, in milliseconds. */
const REST = 250;

/** Keeps an answer that belongs to the newest question. */
export class Asker<Question, Answer> {
  /**
   * @param ask asks; may reject
   * @param told hears the answer to the newest question, or why there is none
   */
  constructor(
    private readonly _ask: (question: Question) => Promise<Answer>,
    private readonly _told: (answer: Answer | null, error: unknown) => void,
    private readonly _rest: number = REST
  ) {}

  /** Whether the last answer is not that of the newest question. */
  get isPending(): boolean {
    return this._question !== null || this._isAsking;
  }

  /** Ask this next; `now` without waiting for more changes. */
  put(question: Question, now = false): void {
    this._question = { question };
    clearTimeout(this._timer);
    if (now) {
      void this._work();
    } else {
      this._timer = setTimeout(() => void this._work(), this._rest);
    }
  }

  /** Ask no more, and tell of no answer. */
  dispose(): void {
    this._isDisposed = true;
    clearTimeout(this._timer);
  }

  private async _work(): Promise<void> {
    if (this._isAsking || this._question === null || this._isDisposed) {
      return; // What is under way comes back here when it is answered.
    }
    const { question } = this._question;
    this._question = null;
    this._isAsking = true;
    const [answer, error] = await this._ask(question).then(
      found => [found, null] as const,
      (reason: unknown) => [null, reason] as const
    );
    this._isAsking = false;
    if (this._isDisposed) {
      return;
    }
    if (this._question === null) {
      this._told(answer, error);
    } else {
      void this._work();
    }
  }

  private _question: { question: Question } | null = null;
  private _isAsking = false;
  private _isDisposed = false;
  private _timer: ReturnType<typeof setTimeout> | undefined;
}
