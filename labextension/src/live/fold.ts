/**
 * Folds the records of a journal into the cells of the live view, by the rules of
 * `job_runner/protocol/result/fold.py`. Outputs that an Output widget captures go to the widget.
 */
import type * as nbformat from '@jupyterlab/nbformat';

import type { Notices } from './notices';
import { type DisplayContent, Outputs } from './outputs';
import { type WidgetRecord, WidgetStore } from './widgetStore';

/** A record of the journal (docs/protocol.md). */
export type JournalRecord = { k?: unknown; [field: string]: unknown };

export class LiveCell {
  constructor(
    readonly cell: nbformat.ICell,
    notices: Notices
  ) {
    this.outputs = new Outputs(notices);
  }

  readonly outputs: Outputs;
  state: 'idle' | 'running' | 'done' | 'failed' = 'idle';
  executionCount: number | null = null;
}

/** The state of a run, updated record by record. Only its own methods change it. */
export class Fold {
  constructor(private readonly _notices: Notices) {
    this.widgets = new WidgetStore(_notices);
  }

  /** The models of ipywidgets. */
  readonly widgets: WidgetStore;

  /** The cells in order, with those that report how the run ended. */
  cells: LiveCell[] = [];

  /** The notebook's metadata and format. A new object means that all cells are new. */
  notebook: Omit<nbformat.INotebookContent, 'cells'> | null = null;

  /** The running cell. */
  current: LiveCell | null = null;

  /** The state in which the run ended. */
  endState: string | null = null;

  /** Whether the notebook is too large for its record: `setNotebook` has to be called. */
  needsNotebook = false;

  /** Apply a record. Unknown kinds are skipped: a newer runner wrote them. */
  apply(record: JournalRecord): void {
    const fields = record as RecordFields;
    switch (record.k) {
      case 'start':
        return this._restart();
      case 'prepared':
        return this.notebook === null
          ? this.setNotebook(fields.notebook)
          : undefined;
      case 'cell_start':
        return this._startCell(this._cellAt(fields.i));
      case 'cell_end':
        return this._endCell(this._cellAt(fields.i), fields);
      case 'output':
        return this._addOutput(this._cellAt(fields.i), fields);
      case 'update_display':
        return this._updateDisplay(fields.display_id!, fields);
      case 'clear':
        return this._outputsAt(fields.i).clear(fields.wait === true);
      case 'widget':
        return this.widgets.apply(record as unknown as WidgetRecord);
      case 'widget_close':
        return this.widgets.close(fields.id!);
      case 'damaged':
        return this._addNotice(this._notices.damaged(fields.bytes!));
      case 'omitted':
        return this._omit(fields);
      case 'cut':
        return this._addNotice(this._notices.cut(fields.limit));
      case 'dropped': {
        const notice = this._notices.capped(fields.bytes ?? null, fields.limit);
        return this._cellAt(fields.i).outputs.addText('stderr', notice);
      }
      case 'end':
        return this._endRun(fields);
    }
  }

  /** Go on after records that are left out, of about so many bytes. */
  skip(bytes: number): void {
    if (bytes > 0) {
      this._addNotice(this._notices.skipped(bytes));
      this._hasSkipped = true;
    }
  }

  /** Set the notebook, without its outputs. */
  setNotebook({ cells, ...notebook }: nbformat.INotebookContent): void {
    this.notebook = notebook;
    this._notebookCells = cells.map(cell => new LiveCell(cell, this._notices));
    this.cells = [...this._notebookCells, ...this._extraCells.values()];
    this.needsNotebook = false;
  }

  /** A second attempt starts from nothing. */
  private _restart(): void {
    this._hasSkipped = false;
    if (this.notebook !== null) {
      this.cells = this._notebookCells = [];
      this.notebook = null;
    }
    this._extraCells.clear();
    this._displays.clear();
    this.widgets.clear();
    this.current = null;
    this.endState = null;
  }

  private _startCell(cell: LiveCell): void {
    if (this._hasSkipped) {
      this._completeBefore(cell);
    }
    this.current = cell;
    cell.state = 'running';
  }

  /** Cells run in order: those above one that runs have ended, whatever was skipped. */
  private _completeBefore(cell: LiveCell): void {
    const above = this._notebookCells.slice(
      0,
      Math.max(this._notebookCells.indexOf(cell), 0)
    );
    for (const each of above) {
      each.state = each.state === 'running' ? 'done' : each.state;
    }
  }

  private _endCell(
    cell: LiveCell,
    { ok, execution_count }: RecordFields
  ): void {
    cell.state = ok === true ? 'done' : 'failed';
    cell.executionCount = execution_count;
    this.current = this.current === cell ? null : this.current;
  }

  private _addOutput(
    cell: LiveCell,
    { i, output, display_id }: RecordFields
  ): void {
    if (this._hasSkipped && cell.state === 'idle') {
      this._startCell(cell);
    }
    const outputs = this.widgets.capturing(i) ?? cell.outputs;
    if (output.output_type === 'stream') {
      const { name, text } = output as { name: string; text: string };
      return outputs.addText(name, text);
    }
    const displayId = 'data' in output ? display_id : undefined;
    if (displayId !== undefined) {
      this._updateDisplay(displayId, output as DisplayContent);
      const places = this._displays.get(displayId) ?? new Set();
      this._displays.set(displayId, places.add(outputs));
    }
    outputs.add(output, displayId);
  }

  private _updateDisplay(displayId: string, content: DisplayContent): void {
    for (const outputs of this._displays.get(displayId) ?? []) {
      outputs.update(displayId, content);
      this.widgets.noteChange(outputs);
    }
  }

  private _omit({ of, id, bytes }: RecordFields): void {
    if (of === 'widget' && id !== undefined) {
      this.widgets.omit(id, bytes!);
    } else if (of === 'prepared') {
      this.needsNotebook = this.notebook === null;
    } else if (of === 'output' || of === 'update_display') {
      this._addNotice(this._notices.omitted(bytes!));
    }
  }

  /** Add a notice to the running cell, or to an extra cell. */
  private _addNotice(notice: string): void {
    (this.current ?? this._cellAt(-1)).outputs.addText('stderr', notice);
  }

  /** The first end counts: two hosts may have finished the same dead attempt. */
  private _endRun({ state, cell: index, banner }: RecordFields): void {
    if (this.endState !== null) {
      return;
    }
    this.endState = state;
    const last = typeof index === 'number' ? this._cellAt(index) : this.current;
    // All cells may have run, and the end names the one with an error, whose records were skipped.
    if (last !== null) {
      last.state = 'failed';
    }
    this.current = null;
    for (const [position, content] of banner ?? []) {
      this.cells.splice(position, 0, new LiveCell(content, this._notices));
    }
  }

  /** Where an output of a cell goes: below the cell, or into a widget. */
  private _outputsAt(index: number): Outputs {
    return this.widgets.capturing(index) ?? this._cellAt(index).outputs;
  }

  /** The code cell of an index, or an extra cell if the notebook's record is damaged. */
  private _cellAt(index: number): LiveCell {
    const notebookCell = this._notebookCells[index];
    if (notebookCell?.cell.cell_type === 'code') {
      return notebookCell;
    }
    let cell = this._extraCells.get(index);
    if (cell === undefined) {
      cell = new LiveCell(
        { cell_type: 'code', source: '', metadata: {} },
        this._notices
      );
      this._extraCells.set(index, cell);
      this.cells.push(cell);
    }
    return cell;
  }

  /** The notebook's own cells: the banners at the end do not shift the records' indices. */
  private _notebookCells: LiveCell[] = [];
  private readonly _extraCells = new Map<number, LiveCell>();
  /** Whether records were left out, the beginning of a cell perhaps among them. */
  private _hasSkipped = false;
  /** The places that may show an output of a display id. */
  private readonly _displays = new Map<string, Set<Outputs>>();
}

/** The fields of records, each of which some kinds have. */
type RecordFields = DisplayContent & {
  i: number;
  notebook: nbformat.INotebookContent;
  ok?: boolean;
  execution_count: number | null;
  output: nbformat.IOutput;
  display_id?: string;
  id?: string;
  wait?: boolean;
  of?: string;
  bytes?: number;
  limit: number;
  state: string;
  cell?: number | null;
  banner?: [position: number, cell: nbformat.ICell][];
};
