/**
 * From records to what is shown of a run: the rules of `job_runner/protocol/result/fold.py`, for as much as
 * can be looked at while it runs. What Output widgets capture is shown below its cell, because there
 * are no widgets without a kernel; the result has it in its place.
 */
import type * as nbformat from '@jupyterlab/nbformat';

import { type Display, type Notices, Outputs } from './outputs';

/** A record of the journal (docs/protocol.md): whoever reads one checks what it needs. */
export type JournalRecord = { k?: unknown; [field: string]: unknown };

/** How a cell stands. */
export type CellState = 'idle' | 'running' | 'done' | 'failed';

/** A cell of the run. */
export class LiveCell {
  constructor(
    readonly cell: nbformat.ICell,
    notes: Notices
  ) {
    this.outputs = new Outputs(notes);
  }

  readonly outputs: Outputs;
  state: CellState = 'idle';
  executionCount: number | null = null;
}

/** How the run ended. */
export type RunEnd = { state: string; message: string | null };

/** What is new since the last look. */
export type FoldChanges = {
  /** Whether it is another notebook: nothing of what was shown holds. */
  isReplaced: boolean;
  /** Cells that came into the notebook, in this order. */
  inserted: [index: number, cell: LiveCell][];
  /** Cells that show something else. */
  changed: Set<LiveCell>;
};

/** A run, record by record. */
export class Fold {
  constructor(private readonly _notices: Notices) {}

  /** The cells in their order, with those that tell how it ended. */
  get cells(): readonly LiveCell[] {
    return this._cells;
  }

  /** The notebook's metadata and format. */
  get notebook(): Omit<nbformat.INotebookContent, 'cells'> | null {
    return this._notebook;
  }

  /** The cell that runs. */
  get current(): LiveCell | null {
    return this._current;
  }

  get end(): RunEnd | null {
    return this._end;
  }

  /** Whether the notebook itself was too large to come with its record: it has to be given. */
  get needsNotebook(): boolean {
    return this._needsNotebook;
  }

  /** Take one more record; kinds that are not known are a newer runner's. */
  apply(record: JournalRecord): void {
    if (typeof record.k === 'string' && Object.hasOwn(RECORD_RULES, record.k)) {
      RECORD_RULES[record.k]!(this, record);
    }
  }

  /** Take what has changed since the last time. */
  takeChanges(): FoldChanges {
    const news = this._changes;
    this._changes = noChanges();
    return news;
  }

  /** Show this notebook, without what stands in it as outputs. */
  setNotebook({ cells, ...notebook }: nbformat.INotebookContent): void {
    this._notebook = notebook;
    this._notebookCells = cells.map(cell => new LiveCell(cell, this._notices));
    this._cells = [...this._notebookCells];
    this._needsNotebook = false;
    this._changes = { ...noChanges(), isReplaced: true };
    const early = [...this._extraCells];
    this._extraCells.clear();
    for (const [index, cell] of early) {
      cell.outputs.shown.forEach(output =>
        this._cellAt(index).outputs.add(output)
      );
    }
  }

  /** @internal The runner began: a second attempt begins from nothing. */
  _restart(): void {
    if (this._notebook !== null) {
      this._cells = this._notebookCells = [];
      this._notebook = null;
      this._changes = { ...noChanges(), isReplaced: true };
    }
    this._extraCells.clear();
    this._displays.clear();
    this._pendingClears.clear();
    this._current = null;
    this._end = null;
  }

  /** @internal */
  _requestNotebook(): void {
    this._needsNotebook = this._notebook === null;
  }

  /** @internal */
  _startCell(index: number): void {
    const cell = this._cellAt(index);
    cell.state = 'running';
    this._current = cell;
    this._changes.changed.add(cell);
  }

  /** @internal */
  _endCell(index: number, isOk: boolean, count: number | null): void {
    const cell = this._cellAt(index);
    cell.state = isOk ? 'done' : 'failed';
    cell.executionCount = count;
    if (this._current === cell) {
      this._current = null;
    }
    this._changes.changed.add(cell);
  }

  /** @internal */
  _addStream(index: number | null, name: string, text: string): void {
    const cell = index === null ? this._currentCell() : this._cellAt(index);
    this._applyPendingClear(cell);
    cell.outputs.stream(name, text);
    this._changes.changed.add(cell);
  }

  /** @internal */
  _addOutput(index: number, output: nbformat.IOutput, id: unknown): void {
    const cell = this._cellAt(index);
    this._applyPendingClear(cell);
    if (typeof id === 'string') {
      this._updateDisplay(id, output);
    }
    const display = cell.outputs.add(output);
    if (typeof id === 'string') {
      const places = this._displays.get(id) ?? [];
      const shown = places.filter(place => place.display.isShown());
      this._displays.set(id, [...shown, { cell, display }]);
    }
    this._changes.changed.add(cell);
  }

  /** @internal */
  _updateDisplay(id: string, shown: nbformat.IOutput): void {
    for (const { cell, display } of this._displays.get(id) ?? []) {
      display.update(shown);
      this._changes.changed.add(cell);
    }
  }

  /** @internal */
  _clearCell(index: number, isLater: boolean): void {
    const cell = this._cellAt(index);
    this._pendingClears.add(cell);
    if (!isLater) {
      this._applyPendingClear(cell);
    }
  }

  /** @internal */
  _addNotice(kind: 'damaged' | 'omitted', bytes: number): void {
    this._addStream(null, 'stderr', this._notices[kind](bytes));
  }

  /** @internal */
  _addLimitNotice(index: number, bytes: number | null, limit: number): void {
    this._addStream(index, 'stderr', this._notices.capped(bytes, limit));
  }

  /** @internal The first end counts: two hosts may have finished the same dead attempt. */
  _endRun(end: RunEnd, cell: unknown, banner: unknown): void {
    if (this._end !== null) {
      return;
    }
    this._end = end;
    const last = typeof cell === 'number' ? this._cellAt(cell) : this._current;
    if (last?.state === 'running') {
      last.state = 'failed';
      this._changes.changed.add(last);
    }
    this._current = null;
    for (const [position, content] of Array.isArray(banner)
      ? (banner as [number, nbformat.ICell][])
      : []) {
      this._insertCell(position, new LiveCell(content, this._notices));
    }
  }

  private _insertCell(position: number, cell: LiveCell): void {
    this._cells.splice(position, 0, cell);
    this._changes.inserted.push([position, cell]);
  }

  private _applyPendingClear(cell: LiveCell): void {
    if (this._pendingClears.delete(cell)) {
      cell.outputs.clear();
      this._changes.changed.add(cell);
    }
  }

  /** The cell that runs; where none does, one for what belongs to nobody. */
  private _currentCell(): LiveCell {
    return this._current ?? this._cellAt(-1);
  }

  /** A code cell by its index; a new one if the record that told of it is damaged. */
  private _cellAt(index: number): LiveCell {
    const prepared = this._notebookCells[index];
    if (prepared?.cell.cell_type === 'code') {
      return prepared;
    }
    let cell = this._extraCells.get(index);
    if (cell === undefined) {
      cell = new LiveCell({ ...EMPTY_CELL }, this._notices);
      this._extraCells.set(index, cell);
      this._insertCell(this._cells.length, cell);
    }
    return cell;
  }

  private _notebook: Omit<nbformat.INotebookContent, 'cells'> | null = null;
  private _notebookCells: LiveCell[] = [];
  private _cells: LiveCell[] = [];
  private readonly _extraCells = new Map<number, LiveCell>();
  private readonly _displays = new Map<
    string,
    { cell: LiveCell; display: Display }[]
  >();
  private readonly _pendingClears = new Set<LiveCell>();
  private _current: LiveCell | null = null;
  private _end: RunEnd | null = null;
  private _needsNotebook = false;
  private _changes: FoldChanges = noChanges();
}

const EMPTY_CELL: nbformat.ICell = {
  cell_type: 'code',
  source: '',
  metadata: {},
  outputs: [],
  execution_count: null
};

function noChanges(): FoldChanges {
  return { isReplaced: false, inserted: [], changed: new Set() };
}

type Rule = (run: Fold, record: JournalRecord) => void;

/** What each kind of record does. */
const RECORD_RULES: Record<string, Rule> = {
  start: run => run._restart(),
  prepared: (run, { notebook }) => {
    if (run.notebook === null) {
      run.setNotebook(notebook as nbformat.INotebookContent);
    }
  },
  cell_start: (run, { i }) => run._startCell(i as number),
  cell_end: (run, { i, ok, execution_count }) =>
    run._endCell(i as number, ok === true, execution_count as number | null),
  output: (run, { i, output, display_id }) => {
    const shown = output as nbformat.IOutput;
    if (shown.output_type === 'stream') {
      run._addStream(i as number, shown.name as string, shown.text as string);
    } else {
      run._addOutput(
        i as number,
        shown,
        'data' in shown ? display_id : undefined
      );
    }
  },
  update_display: (run, { display_id, data, metadata }) =>
    run._updateDisplay(
      display_id as string,
      { data, metadata } as nbformat.IOutput
    ),
  clear: (run, { i, wait }) => run._clearCell(i as number, wait === true),
  damaged: (run, { bytes }) => run._addNotice('damaged', bytes as number),
  dropped: (run, { i, bytes, limit }) =>
    run._addLimitNotice(
      i as number,
      (bytes as number | undefined) ?? null,
      limit as number
    ),
  omitted: (run, { of, bytes }) => {
    if (of === 'prepared') {
      run._requestNotebook();
    } else if (of === 'output' || of === 'update_display') {
      run._addNotice('omitted', bytes as number);
    }
  },
  end: (run, { state, message, cell, banner }) =>
    run._endRun(
      { state: state as string, message: (message as string | null) ?? null },
      cell,
      banner
    )
};
