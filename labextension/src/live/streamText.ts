/**
 * The text of a stream, after carriage returns and backspaces are applied as in JupyterLab and in
 * the result (`job_runner/protocol/result/carriage_return.py`). Only its end is kept.
 */
export class StreamText {
  /** @param maxChars how many characters are kept; twice as many until it is trimmed */
  constructor(private readonly _maxChars: number) {}

  /** The kept text. */
  get text(): string {
    return this._lines + this._line;
  }

  /** How many characters were dropped from the beginning. */
  dropped = 0;

  /** Append text, at the cost of its length and of the lines that it overwrites. */
  append(text: string): void {
    // Matches characters between control characters, and these alone.
    for (const token of text.match(/[^\n\r\b]+|[\n\r\b]/g) ?? []) {
      if (token === '\n') {
        this._lines += this._line + token;
        this._line = '';
        this._cursor = 0;
      } else if (token === '\r') {
        this._cursor = 0;
      } else if (token === '\b') {
        this._eraseCharacter();
      } else {
        const end = this._cursor + token.length;
        this._line =
          this._line.slice(0, this._cursor) + token + this._line.slice(end);
        this._cursor = end;
      }
    }
    this._trim();
  }

  private _eraseCharacter(): void {
    if (this._cursor > 0) {
      this._cursor -= 1;
      this._line =
        this._line.slice(0, this._cursor) + this._line.slice(this._cursor + 2);
    }
  }

  private _trim(): void {
    const length = this._lines.length + this._line.length;
    if (length < 2 * this._maxChars) {
      return;
    }
    const excess = length - this._maxChars;
    // Cut at the end of a line, if there is one.
    const cut =
      excess < this._lines.length
        ? this._lines.indexOf('\n', excess) + 1
        : this._lines.length;
    const lineCut = Math.max(excess - this._lines.length, 0);
    this._lines = this._lines.slice(cut);
    this._line = this._line.slice(lineCut);
    this._cursor = Math.max(this._cursor - lineCut, 0);
    this.dropped += cut + lineCut;
  }

  /** The finished lines, and the one that is being written. */
  private _lines = '';
  private _line = '';
  private _cursor = 0;
}
