/**
 * The executed notebook while it runs: JupyterLab's notebook widget, read-only, on a model that
 * cannot be saved. Its outputs are untrusted, hence sanitized; those of the delivered result are
 * trusted.
 */
import type { CodeCellModel } from '@jupyterlab/cells';
import type * as nbformat from '@jupyterlab/nbformat';
import { NotebookModel, StaticNotebook } from '@jupyterlab/notebook';

import type { NotebookServices } from '../ui/notebookServices';
import { disableShortcuts, readOnlyOptions } from '../ui/readOnlyNotebook';
import type { Fold, LiveCell } from './fold';
import type { Outputs } from './outputs';
import { syncOutputs } from './render/syncOutputs';

export class LiveNotebook extends StaticNotebook {
  constructor(
    private readonly _fold: Fold,
    services: NotebookServices
  ) {
    const { notebookConfig, ...options } = readOnlyOptions(services);
    super({
      ...options,
      notebookConfig: {
        ...notebookConfig!,
        maxNumberOutputs: Infinity // `Outputs` limits them, and keeps the last ones
      }
    });
    this.addClass('jp-ToJob-live');
    disableShortcuts(this);
    for (const event of SCROLL_EVENTS) {
      const leave = (each: Event) => this._onUserScroll(each);
      this.node.addEventListener(event, leave, { passive: true });
    }
  }

  /** Show all changes; `isLatest` if no more records are expected for now. */
  sync(isLatest: boolean): void {
    this._isFollowing ||= this._isAtEnd();
    if (this.model === null || this._notebook !== this._fold.notebook) {
      this._replaceModel();
    }
    this._insertNewCells();
    this._rendered.forEach((_, index) => this._updateCell(index));
    this._fold.widgets.flush();
    if (isLatest) {
      this._scrollToNewest();
    }
  }

  override dispose(): void {
    const { model } = this;
    super.dispose();
    model?.dispose();
  }

  private _replaceModel(): void {
    const oldModel = this.model;
    const { cells, notebook } = this._fold;
    const model = new NotebookModel({ translator: this.translator });
    model.fromJSON({
      metadata: {},
      nbformat: 4,
      nbformat_minor: 5,
      ...notebook,
      cells: cells.map(toReadOnly)
    });
    this.model = model;
    oldModel?.dispose();
    this._notebook = notebook;
    this._rendered = cells.map(cell => ({ cell, outputs: [] }));
  }

  private _insertNewCells(): void {
    this._fold.cells.forEach((cell, index) => {
      if (this._rendered[index]?.cell !== cell) {
        this.model!.sharedModel.insertCell(index, toReadOnly(cell));
        this._rendered.splice(index, 0, { cell, outputs: [] });
      }
    });
  }

  /** Update a cell's outputs and prompt, at the cost of what changed. */
  private _updateCell(index: number): void {
    const { cell, outputs: before } = this._rendered[index]!;
    const model = this.model!.cells.get(index) as CodeCellModel;
    if (model.type !== 'code') {
      return;
    }
    model.executionState = cell.state === 'running' ? 'running' : 'idle';
    model.executionCount = cell.executionCount;
    const outputs = cell.outputs.shown;
    syncOutputs(model.outputs, before, outputs);
    this._rendered[index] = { cell, outputs };
  }

  private _scrollToNewest(): void {
    this._followedIndex = this._newestIndex;
    if (this._isFollowing && this._followedIndex >= 0) {
      void this.scrollToItem(this._followedIndex, 'end').catch(() => {
        // The cell is not rendered yet; the next call tries again.
      });
    }
  }

  /** The index of the running or failed cell; -1 if there is none. */
  private get _newestIndex(): number {
    const { current, cells, endState } = this._fold;
    if (endState === null) {
      return cells.findIndex(cell => cell === current);
    }
    return endState === 'succeeded'
      ? -1
      : cells.map(({ state }) => state).lastIndexOf('failed');
  }

  private _onUserScroll(event: Event): void {
    if (!(event instanceof KeyboardEvent) || SCROLL_KEYS.test(event.key)) {
      this._isFollowing = false;
      this._lastUserScroll = performance.now();
    }
  }

  /** Whether the user has scrolled back to the end of the notebook or of the followed cell. */
  private _isAtEnd(): boolean {
    const { scrollTop, scrollHeight, clientHeight } = this.outerNode;
    const { bottom } = this.outerNode.getBoundingClientRect();
    const cell =
      this.widgets[this._followedIndex]?.node.getBoundingClientRect();
    const below = (cell?.bottom ?? Infinity) - bottom;
    const isAtEnd =
      scrollHeight - scrollTop - clientHeight < END_MARGIN ||
      (below < END_MARGIN && below > -clientHeight / 3);
    // At the start of a scroll the view is still at the end.
    return isAtEnd && performance.now() - this._lastUserScroll > RESUME_MS;
  }

  /** Whether the view follows the running cell, and later the failed one. */
  private _isFollowing = true;
  /** The cell that the view scrolled to last. */
  private _followedIndex = -1;
  /** When the user last scrolled, as `performance.now()`. */
  private _lastUserScroll = 0;
  /** What is in the page: the notebook, and its cells with their outputs. */
  private _notebook: Fold['notebook'] = null;
  private _rendered: { cell: LiveCell; outputs: Outputs['shown'] }[] = [];
}

/**
 * The distance that counts as the end, in pixels, and the pause after scrolling, in milliseconds.
 */
const END_MARGIN = 40;
const RESUME_MS = 1000;

/** Events and keys by which the user scrolls. */
const SCROLL_EVENTS = ['wheel', 'touchmove', 'keydown', 'mousedown'];
const SCROLL_KEYS = /^(Page|Arrow)(Up|Down)$|^(Home|End)$/;

/** A cell without outputs that cannot be edited, and is not trusted whatever it says. */
function toReadOnly({ cell }: LiveCell): nbformat.ICell {
  const metadata = {
    ...cell.metadata,
    trusted: false,
    editable: false,
    deletable: false
  };
  return cell.cell_type === 'code'
    ? { ...cell, metadata, outputs: [], execution_count: null }
    : { ...cell, metadata };
}
