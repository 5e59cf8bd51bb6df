/**
 * A stream's text as it is shown: what `\r` and `\b` overwrite is gone, as in JupyterLab and in the
 * result (`job_runner/protocol/result/carriage_return.py` has the same rules), and only its end is kept.
 */

/** Takes a text in pieces; each costs its own length, and its line's if that is overwritten. */
export class StreamText {
  /** @param most characters that are kept, near enough */
  constructor(private readonly _most: number) {}

  /** How many characters of the beginning are not kept. */
  get dropped(): number {
    return this._dropped;
  }

  /** What is left of it. */
  get text(): string {
    this._done = [this._done.join('')];
    return this._done[0]! + this._line;
  }

  /** Take more. */
  feed(text: string): void {
    const lines = text.split('\n');
    lines.forEach((line, index) => {
      this._write(line);
      if (index < lines.length - 1) {
        this._finish();
      }
    });
    this._bound();
  }

  private _finish(): void {
    this._done.push(this._line, '\n');
    this._length += this._line.length + 1;
    this._line = '';
    this._cursor = 0;
  }

  /** Take a piece of one line. */
  private _write(text: string): void {
    const [first, ...others] = text.split('\r');
    this._writeOn(first!);
    for (const piece of text.includes('\b') ? others : leftOf(others)) {
      this._cursor = 0;
      this._writeOn(piece);
    }
  }

  private _writeOn(text: string): void {
    const [first, ...others] = text.split('\b');
    this._put(first!);
    for (const piece of others) {
      if (this._cursor > 0) {
        this._cursor -= 1;
        const rest = this._line.slice(this._cursor + 2);
        this._line = this._line.slice(0, this._cursor) + rest;
      }
      this._put(piece);
    }
  }

  private _put(text: string): void {
    const end = this._cursor + text.length;
    this._line =
      this._cursor === this._line.length
        ? this._line + text
        : this._line.slice(0, this._cursor) + text + this._line.slice(end);
    this._cursor = end;
  }

  /** Let go of the beginning; not at every piece, so that this costs what comes. */
  private _bound(): void {
    if (this._length + this._line.length < 2 * this._most) {
      return;
    }
    const whole = this._done.join('');
    const excess = this._length + this._line.length - this._most;
    const cut = Math.min(excess, whole.length);
    const left = whole.slice(cut);
    // Whole lines, if there is an end of one.
    const start = cut > 0 ? left.indexOf('\n') + 1 : 0;
    this._done = [left.slice(start)];
    this._length = this._done[0]!.length;
    const lineCut = excess - cut;
    this._line = this._line.slice(lineCut);
    this._cursor = Math.max(this._cursor - lineCut, 0);
    this._dropped += cut + start + lineCut;
  }

  /** Finished lines, in pieces. */
  private _done: string[] = [];
  private _length = 0;
  private _line = '';
  private _cursor = 0;
  private _dropped = 0;
}

/** Those that a later one does not cover wholly: of a progress bar, the last. */
function leftOf(pieces: string[]): string[] {
  const left: string[] = [];
  for (const piece of pieces.reverse()) {
    if (left.length === 0 || piece.length > left.at(-1)!.length) {
      left.push(piece);
    }
  }
  return left.reverse();
}
