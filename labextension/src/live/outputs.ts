/** What is shown below one cell while it runs: bounded, because a page is not a notebook file. */
import type * as nbformat from '@jupyterlab/nbformat';

import { StreamText } from './streamText';

/** Characters of one stream that are shown. */
export const MOST_TEXT = 128 << 10;

/** Outputs of one cell that are shown, and characters in them. */
export const MOST_OUTPUTS = 200;
export const MOST_DATA = 8 << 20;

/** How a note on what is not shown is worded. */
export type Notices = {
  /** Of so many characters of text, or outputs. */
  dropped: (characters: number, outputs: number) => string;
  damaged: (bytes: number) => string;
  omitted: (bytes: number) => string;
  capped: (bytes: number | null, limit: number) => string;
};

/** An output; it changes its place for a new object whenever it shows something else. */
type Entry = {
  output: nbformat.IOutput;
  stream: StreamText | null;
  isStale: boolean;
  size: number;
};

/** An output that an update may change, wherever it is. */
export type Display = {
  /** Whether it is still shown: neither cleared nor let go of. */
  isShown(): boolean;
  update(shown: nbformat.IOutput): void;
};

/** In the place of what is shown no longer: whoever may update it must not keep it in memory. */
const GONE: nbformat.IOutput = { output_type: 'gone' };

/** The outputs of a cell. */
export class Outputs {
  constructor(private readonly _notes: Notices) {}

  /** What is shown; an output that is the same as before is the same object. */
  get shown(): readonly nbformat.IOutput[] {
    const { characters, outputs } = this._dropped();
    const shown = this._entries.map(entry => this._settled(entry));
    if (characters === 0 && outputs === 0) {
      return shown;
    }
    const words = this._notes.dropped(characters, outputs);
    if (this._note?.text !== words) {
      this._note = { text: words, output: note(words) };
    }
    return [this._note.output, ...shown];
  }

  /** Take a piece of a stream: it goes on where the last output is of this stream. */
  stream(name: string, text: string): void {
    let last = this._entries.at(-1);
    if (
      last === undefined ||
      last.stream === null ||
      last.output.name !== name
    ) {
      const output = { output_type: 'stream', name, text: '' };
      last = {
        output,
        stream: new StreamText(MOST_TEXT),
        isStale: true,
        size: 0
      };
      this._push(last);
    }
    last.stream!.feed(text);
    last.isStale = true;
    const size = Math.min(last.size + text.length, 2 * MOST_TEXT);
    this._size += size - last.size;
    last.size = size;
    this._bound();
  }

  /** Take an output that is no stream. */
  add(output: nbformat.IOutput): Display {
    const size = sizeOf(output);
    const entry: Entry = { output, stream: null, isStale: false, size };
    this._push(entry);
    this._size += size;
    this._bound();
    return {
      isShown: () => entry.output !== GONE,
      update: ({ data, metadata }) => {
        if (entry.output !== GONE) {
          entry.output = { ...entry.output, data, metadata };
        }
      }
    };
  }

  /** Show nothing any more. */
  clear(): void {
    this._entries.forEach(entry => (entry.output = GONE));
    this._entries = [];
    this._size = 0;
    this._droppedOutputs = this._droppedText = 0;
  }

  private _push(entry: Entry): void {
    this._entries.push(entry);
  }

  private _settled(entry: Entry): nbformat.IOutput {
    if (entry.isStale) {
      entry.output = { ...entry.output, text: entry.stream!.text };
      entry.isStale = false;
    }
    return entry.output;
  }

  /** Let go of the oldest outputs, a good part at a time: each time all are shown anew. */
  private _bound(): void {
    const isOver = () =>
      this._entries.length > MOST_OUTPUTS || this._size > MOST_DATA;
    if (!isOver()) {
      return;
    }
    const half = this._size / 2;
    while (
      this._entries.length > 1 &&
      (this._entries.length > MOST_OUTPUTS / 2 || this._size > half)
    ) {
      const gone = this._entries.shift()!;
      gone.output = GONE;
      this._size -= gone.size;
      this._droppedOutputs += 1;
    }
  }

  private _dropped(): { characters: number; outputs: number } {
    const characters = this._entries.reduce(
      (sum, { stream }) => sum + (stream?.dropped ?? 0),
      this._droppedText
    );
    return { characters, outputs: this._droppedOutputs };
  }

  private _entries: Entry[] = [];
  private _size = 0;
  private _droppedOutputs = 0;
  private _droppedText = 0;
  private _note: { text: string; output: nbformat.IOutput } | null = null;
}

function note(words: string): nbformat.IOutput {
  return {
    output_type: 'display_data',
    data: { 'text/plain': words },
    metadata: {}
  };
}

function sizeOf(output: nbformat.IOutput): number {
  const { data, traceback } = output as {
    data?: Record<string, unknown>;
    traceback?: string[];
  };
  const parts: unknown[] = [...Object.values(data ?? {}), ...(traceback ?? [])];
  return parts.reduce<number>(
    (sum, part) =>
      sum +
      (typeof part === 'string' ? part.length : JSON.stringify(part).length),
    0
  );
}
