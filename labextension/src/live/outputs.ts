/** Keeps the outputs of one running cell, within limits: a page cannot hold what a file can. */
import type * as nbformat from '@jupyterlab/nbformat';

import type { Notices } from './notices';
import { StreamText } from './streamText';

/** The most characters of one stream that are shown. */
export const MAX_STREAM_CHARS = 128 << 10;

/** The most outputs of one cell that are shown, and the most characters in them. */
export const MAX_OUTPUTS = 200;
export const MAX_CHARS = 8 << 20;

type Stream = { name: string; text: StreamText };

/** An output, or a stream whose output is made on demand. A changed output is a new object. */
type Entry = {
  output: nbformat.IOutput | null;
  stream?: Stream;
  displayId?: string;
  chars: number;
};

/** What an update of a display replaces. */
export type DisplayContent = Pick<nbformat.IDisplayData, 'data' | 'metadata'>;

export class Outputs {
  constructor(private readonly _notices: Notices) {}

  /** The outputs to show. An unchanged output is the same object as before. */
  get shown(): readonly nbformat.IOutput[] {
    const shown = this._entries.map(
      entry => (entry.output ??= toOutput(entry.stream!))
    );
    const chars = this._entries.reduce(
      (sum, { stream }) => sum + (stream?.text.dropped ?? 0),
      0
    );
    if (chars === 0 && this._dropped === 0) {
      return shown;
    }
    const text = this._notices.dropped(chars, this._dropped);
    if (this._notice?.data['text/plain'] !== text) {
      this._notice = {
        output_type: 'display_data',
        data: { 'text/plain': text },
        metadata: {}
      };
    }
    return [this._notice, ...shown];
  }

  /** Add text to a stream, which continues if the last output is of this stream. */
  addText(name: string, text: string): void {
    this._applyPendingClear();
    let entry = this._entries.at(-1);
    if (entry?.stream?.name !== name) {
      const stream = { name, text: new StreamText(MAX_STREAM_CHARS) };
      entry = { output: null, stream, chars: 0 };
      this._entries.push(entry);
    }
    entry.stream!.text.append(text);
    entry.output = null;
    const chars = Math.min(entry.chars + text.length, 2 * MAX_STREAM_CHARS);
    this._setChars(entry, chars);
  }

  /** Add an output that is no stream. */
  add(output: nbformat.IOutput, displayId?: string): void {
    this._applyPendingClear();
    const entry = { output, displayId, chars: 0 };
    this._entries.push(entry);
    this._setChars(entry, countChars(output));
  }

  /** Replace what the outputs with a display id show. */
  update(displayId: string, { data, metadata }: DisplayContent): void {
    for (const entry of this._entries.filter(
      each => each.displayId === displayId
    )) {
      entry.output = { ...entry.output!, data, metadata };
      this._setChars(entry, countChars(entry.output));
    }
  }

  /** Remove all outputs, now or when the next one comes. */
  clear(isDelayed = false): void {
    this._isClearPending = true;
    if (!isDelayed) {
      this._applyPendingClear();
    }
  }

  private _applyPendingClear(): void {
    if (this._isClearPending) {
      this._isClearPending = false;
      this._entries = [];
      this._chars = this._dropped = 0;
    }
  }

  private _setChars(entry: Entry, chars: number): void {
    this._chars += chars - entry.chars;
    entry.chars = chars;
    if (this._entries.length <= MAX_OUTPUTS && this._chars <= MAX_CHARS) {
      return;
    }
    // Drop half of them at once: the others are rendered again each time.
    const limit = this._chars / 2;
    while (
      this._entries.length > 1 &&
      (this._entries.length > MAX_OUTPUTS / 2 || this._chars > limit)
    ) {
      this._chars -= this._entries.shift()!.chars;
      this._dropped += 1;
    }
  }

  private _entries: Entry[] = [];
  private _chars = 0;
  private _dropped = 0;
  private _notice: nbformat.IDisplayData | null = null;
  private _isClearPending = false;
}

function toOutput({ name, text }: Stream): nbformat.IOutput {
  return { output_type: 'stream', name, text: text.text };
}

function countChars(output: nbformat.IOutput): number {
  const { data, traceback } = output as Partial<nbformat.IDisplayData> &
    Partial<nbformat.IError>;
  const parts = [...Object.values(data ?? {}), ...(traceback ?? [])];
  return parts.reduce<number>(
    (sum, part) =>
      sum + (typeof part === 'string' ? part : JSON.stringify(part)).length,
    0
  );
}
