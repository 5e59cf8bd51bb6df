/**
 * From records to what is shown of a run: the rules of `job_runner/protocol/result/fold.py`, for as much as
 * can be looked at while it runs. What Output widgets capture is shown below its cell, because there
 * are no widgets without a kernel; the result has it in its place.
 */
import type * as nbformat from '@jupyterlab/nbformat';

import { type Display, type Notes, Outputs } from './outputs';

/** A record of the journal (docs/protocol.md): whoever reads one checks what it needs. */
export type JournalRecord = { k?: unknown; [field: string]: unknown };

/** How a cell stands. */
export type CellState = 'idle' | 'running' | 'done' | 'failed';

/** A cell of the run. */
export class LiveCell {
  constructor(
    readonly cell: nbformat.ICell,
    notes: Notes
  ) {
    this.outputs = new Outputs(notes);
  }

  readonly outputs: Outputs;
  state: CellState = 'idle';
  executionCount: number | null = null;
}

/** How the run ended. */
export type End = { state: string; message: string | null };

/** What is new since the last look. */
export type News = {
  /** Whether it is another notebook: nothing of what was shown holds. */
  isNew: boolean;
  /** Cells that came into the notebook, in this order. */
  inserted: [index: number, cell: LiveCell][];
  /** Cells that show something else. */
  changed: Set<LiveCell>;
};

/** A run, record by record. */
export class Fold {
  constructor(private readonly _notes: Notes) {}

  /** The cells in their order, with those that tell how it ended. */
  get cells(): readonly LiveCell[] {
    return this._shown;
  }

  /** The notebook's metadata and format. */
  get notebook(): Omit<nbformat.INotebookContent, 'cells'> | null {
    return this._notebook;
  }

  /** The cell that runs. */
  get current(): LiveCell | null {
    return this._current;
  }

  get end(): End | null {
    return this._end;
  }

  /** Whether the notebook itself was too large to come with its record: it has to be given. */
  get isWanting(): boolean {
    return this._isWanting;
  }

  /** Take one more record; kinds that are not known are a newer runner's. */
  feed(record: JournalRecord): void {
    if (typeof record.k === 'string' && Object.hasOwn(RULES, record.k)) {
      RULES[record.k]!(this, record);
    }
  }

  /** Take what has changed since the last time. */
  take(): News {
    const news = this._news;
    this._news = nothing();
    return news;
  }

  /** Show this notebook, without what stands in it as outputs. */
  prepare({ cells, ...notebook }: nbformat.INotebookContent): void {
    this._notebook = notebook;
    this._prepared = cells.map(cell => new LiveCell(cell, this._notes));
    this._shown = [...this._prepared];
    this._isWanting = false;
    this._news = { ...nothing(), isNew: true };
    const early = [...this._recovered];
    this._recovered.clear();
    for (const [index, cell] of early) {
      cell.outputs.shown.forEach(output => this._at(index).outputs.add(output));
    }
  }

  /** @internal The runner began: a second attempt begins from nothing. */
  _begin(): void {
    if (this._notebook !== null) {
      this._shown = this._prepared = [];
      this._notebook = null;
      this._news = { ...nothing(), isNew: true };
    }
    this._recovered.clear();
    this._displays.clear();
    this._clearNext.clear();
    this._current = null;
    this._end = null;
  }

  /** @internal */
  _want(): void {
    this._isWanting = this._notebook === null;
  }

  /** @internal */
  _start(index: number): void {
    const cell = this._at(index);
    cell.state = 'running';
    this._current = cell;
    this._news.changed.add(cell);
  }

  /** @internal */
  _finish(index: number, isOk: boolean, count: number | null): void {
    const cell = this._at(index);
    cell.state = isOk ? 'done' : 'failed';
    cell.executionCount = count;
    if (this._current === cell) {
      this._current = null;
    }
    this._news.changed.add(cell);
  }

  /** @internal */
  _print(index: number | null, name: string, text: string): void {
    const cell = index === null ? this._now() : this._at(index);
    this._clearIfDue(cell);
    cell.outputs.stream(name, text);
    this._news.changed.add(cell);
  }

  /** @internal */
  _display(index: number, output: nbformat.IOutput, id: unknown): void {
    const cell = this._at(index);
    this._clearIfDue(cell);
    if (typeof id === 'string') {
      this._update(id, output);
    }
    const display = cell.outputs.add(output);
    if (typeof id === 'string') {
      const places = this._displays.get(id) ?? [];
      const shown = places.filter(place => place.display.isShown());
      this._displays.set(id, [...shown, { cell, display }]);
    }
    this._news.changed.add(cell);
  }

  /** @internal */
  _update(id: string, shown: nbformat.IOutput): void {
    for (const { cell, display } of this._displays.get(id) ?? []) {
      display.update(shown);
      this._news.changed.add(cell);
    }
  }

  /** @internal */
  _clear(index: number, isLater: boolean): void {
    const cell = this._at(index);
    this._clearNext.add(cell);
    if (!isLater) {
      this._clearIfDue(cell);
    }
  }

  /** @internal */
  _tell(kind: 'damaged' | 'omitted', bytes: number): void {
    this._print(null, 'stderr', this._notes[kind](bytes));
  }

  /** @internal */
  _cap(index: number, bytes: number | null, limit: number): void {
    this._print(index, 'stderr', this._notes.capped(bytes, limit));
  }

  /** @internal The first end counts: two hosts may have finished the same dead attempt. */
  _close(end: End, cell: unknown, banner: unknown): void {
    if (this._end !== null) {
      return;
    }
    this._end = end;
    const last = typeof cell === 'number' ? this._at(cell) : this._current;
    if (last?.state === 'running') {
      last.state = 'failed';
      this._news.changed.add(last);
    }
    this._current = null;
    for (const [position, content] of Array.isArray(banner)
      ? (banner as [number, nbformat.ICell][])
      : []) {
      this._insert(position, new LiveCell(content, this._notes));
    }
  }

  private _insert(position: number, cell: LiveCell): void {
    this._shown.splice(position, 0, cell);
    this._news.inserted.push([position, cell]);
  }

  private _clearIfDue(cell: LiveCell): void {
    if (this._clearNext.delete(cell)) {
      cell.outputs.clear();
      this._news.changed.add(cell);
    }
  }

  /** The cell that runs; where none does, one for what belongs to nobody. */
  private _now(): LiveCell {
    return this._current ?? this._at(-1);
  }

  /** A code cell by its index; a new one if the record that told of it is damaged. */
  private _at(index: number): LiveCell {
    const prepared = this._prepared[index];
    if (prepared?.cell.cell_type === 'code') {
      return prepared;
    }
    let cell = this._recovered.get(index);
    if (cell === undefined) {
      cell = new LiveCell({ ...EMPTY }, this._notes);
      this._recovered.set(index, cell);
      this._insert(this._shown.length, cell);
    }
    return cell;
  }

  private _notebook: Omit<nbformat.INotebookContent, 'cells'> | null = null;
  private _prepared: LiveCell[] = [];
  private _shown: LiveCell[] = [];
  private readonly _recovered = new Map<number, LiveCell>();
  private readonly _displays = new Map<
    string,
    { cell: LiveCell; display: Display }[]
  >();
  private readonly _clearNext = new Set<LiveCell>();
  private _current: LiveCell | null = null;
  private _end: End | null = null;
  private _isWanting = false;
  private _news: News = nothing();
}

const EMPTY: nbformat.ICell = {
  cell_type: 'code',
  source: '',
  metadata: {},
  outputs: [],
  execution_count: null
};

function nothing(): News {
  return { isNew: false, inserted: [], changed: new Set() };
}

type Rule = (run: Fold, record: JournalRecord) => void;

/** What each kind of record does. */
const RULES: Record<string, Rule> = {
  start: run => run._begin(),
  prepared: (run, { notebook }) => {
    if (run.notebook === null) {
      run.prepare(notebook as nbformat.INotebookContent);
    }
  },
  cell_start: (run, { i }) => run._start(i as number),
  cell_end: (run, { i, ok, execution_count }) =>
    run._finish(i as number, ok === true, execution_count as number | null),
  output: (run, { i, output, display_id }) => {
    const shown = output as nbformat.IOutput;
    if (shown.output_type === 'stream') {
      run._print(i as number, shown.name as string, shown.text as string);
    } else {
      run._display(
        i as number,
        shown,
        'data' in shown ? display_id : undefined
      );
    }
  },
  update_display: (run, { display_id, data, metadata }) =>
    run._update(display_id as string, { data, metadata } as nbformat.IOutput),
  clear: (run, { i, wait }) => run._clear(i as number, wait === true),
  damaged: (run, { bytes }) => run._tell('damaged', bytes as number),
  dropped: (run, { i, bytes, limit }) =>
    run._cap(
      i as number,
      (bytes as number | undefined) ?? null,
      limit as number
    ),
  omitted: (run, { of, bytes }) => {
    if (of === 'prepared') {
      run._want();
    } else if (of === 'output' || of === 'update_display') {
      run._tell('omitted', bytes as number);
    }
  },
  end: (run, { state, message, cell, banner }) =>
    run._close(
      { state: state as string, message: (message as string | null) ?? null },
      cell,
      banner
    )
};
