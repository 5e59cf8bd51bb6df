/**
 * The executed notebook, read-only, filling in as it runs: JupyterLab's own notebook widget on a
 * model that nobody can save. Outputs are untrusted, so what is rendered is sanitised; the delivered
 * result is trusted, and shows everything.
 */
import type { CodeCellModel } from '@jupyterlab/cells';
import type { IEditorServices } from '@jupyterlab/codeeditor';
import type * as nbformat from '@jupyterlab/nbformat';
import { Notebook, NotebookModel, StaticNotebook } from '@jupyterlab/notebook';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { ITranslator } from '@jupyterlab/translation';

import type { Fold, LiveCell, FoldChanges } from './fold';

/** What a notebook is rendered with. */
export type RenderServices = {
  rendermime: IRenderMimeRegistry;
  editorServices: IEditorServices;
  translator: ITranslator;
};

/** Shows a fold. */
export class LiveNotebook extends StaticNotebook {
  constructor(
    private readonly _fold: Fold,
    { rendermime, editorServices, translator }: RenderServices
  ) {
    const { factoryService, mimeTypeService } = editorServices;
    super({
      rendermime,
      translator,
      contentFactory: new Notebook.ContentFactory({
        editorFactory: factoryService.newInlineEditor
      }),
      mimeTypeService,
      notebookConfig: {
        ...StaticNotebook.defaultNotebookConfig,
        windowingMode: 'defer',
        scrollPastEnd: false, // what is new is at the end
        maxNumberOutputs: Infinity // ours are bounded, and it is the last ones that count
      }
    });
    this.addClass('jp-ToJob-live');
    // Shortcuts of notebooks that can be run and edited are not for this one.
    for (const name of ['jpKernelUser', 'jpUndoer', 'jpCodeRunner']) {
      delete this.node.dataset[name];
    }
    for (const event of SCROLL_EVENTS) {
      const leave = (each: Event) => this._onUserScroll(each);
      this.node.addEventListener(event, leave, { passive: true });
    }
  }

  /** Show what has changed; `isLatest`: for now nothing more is to come. */
  sync(isLatest: boolean): void {
    this._isFollowing ||= this._isAtEnd();
    const news = this._fold.takeChanges();
    if (news.isReplaced || this.model === null) {
      this._replaceModel();
    } else {
      this._insertCells(news.inserted);
      for (const cell of news.changed) {
        this._updateCell(cell);
      }
    }
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
    const before = this.model;
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
    before?.dispose();
    this._renderedOutputs = new WeakMap();
    cells.forEach(cell => this._updateCell(cell));
  }

  private _insertCells(inserted: FoldChanges['inserted']): void {
    for (const [index, cell] of inserted) {
      this.model!.sharedModel.insertCell(index, toReadOnly(cell));
      this._updateCell(cell);
    }
  }

  /** Bring a cell's outputs and prompt up to date, at the cost of what is another. */
  private _updateCell(cell: LiveCell): void {
    const index = this._fold.cells.indexOf(cell);
    const shown = this.model!.cells.get(index) as CodeCellModel | undefined;
    if (shown?.type !== 'code') {
      return;
    }
    shown.executionState = cell.state === 'running' ? 'running' : 'idle';
    shown.executionCount = cell.executionCount;
    const before = this._renderedOutputs.get(cell) ?? [];
    const now = cell.outputs.shown;
    if (now.length < before.length) {
      shown.outputs.clear();
      now.forEach(output => shown.outputs.add(output));
    } else {
      now.forEach((output, at) => {
        if (at >= before.length) {
          shown.outputs.add(output);
        } else if (output !== before[at]) {
          shown.outputs.set(at, output);
        }
      });
    }
    this._renderedOutputs.set(cell, now);
  }

  private _scrollToNewest(): void {
    this._followedIndex = this._newestIndex;
    if (this._isFollowing && this._followedIndex >= 0) {
      void this.scrollToItem(this._followedIndex, 'end').catch(() => {
        // Not rendered yet: the next piece tries again.
      });
    }
  }

  /** The cell in which something happens: it runs, or it failed; -1: none. */
  private get _newestIndex(): number {
    const { current, cells, end } = this._fold;
    if (end === null) {
      return cells.findIndex(cell => cell === current);
    }
    return end.state === 'succeeded'
      ? -1
      : cells.map(({ state }) => state).lastIndexOf('failed');
  }

  private _onUserScroll(event: Event): void {
    if (!(event instanceof KeyboardEvent) || SCROLL_KEYS.includes(event.key)) {
      this._isFollowing = false;
      this._lastUserScroll = performance.now();
    }
  }

  /** Whether somebody who scrolled away rests at the end again: of everything, or of that cell. */
  private _isAtEnd(): boolean {
    const { scrollTop, scrollHeight, clientHeight } = this.outerNode;
    const { bottom } = this.outerNode.getBoundingClientRect();
    const cell =
      this.widgets[this._followedIndex]?.node.getBoundingClientRect();
    const below = (cell?.bottom ?? Infinity) - bottom;
    const isAtEnd =
      scrollHeight - scrollTop - clientHeight < END_MARGIN ||
      (below < END_MARGIN && below > -clientHeight / 3);
    // Who is about to leave is still there at first.
    return isAtEnd && performance.now() - this._lastUserScroll > RESUME_MS;
  }

  /** Whether the cell that runs, and then one that failed, is kept in sight: nobody reads elsewhere. */
  private _isFollowing = true;
  /** The cell that was to be in sight the last time. */
  private _followedIndex = -1;
  /** When somebody looked elsewhere, in milliseconds. */
  private _lastUserScroll = 0;
  /** What of each cell is in the page. */
  private _renderedOutputs = new WeakMap<
    LiveCell,
    readonly nbformat.IOutput[]
  >();
}

/** How near is at the end, in pixels, and how long nobody moves who rests, in milliseconds. */
const END_MARGIN = 40;
const RESUME_MS = 1000;

/** By what somebody looks elsewhere. */
const SCROLL_EVENTS = ['wheel', 'touchmove', 'keydown', 'mousedown'];
const SCROLL_KEYS = [
  'PageUp',
  'PageDown',
  'Home',
  'End',
  'ArrowUp',
  'ArrowDown'
];

/** A cell without outputs, that cannot be changed. */
function toReadOnly({ cell }: LiveCell): nbformat.ICell {
  const metadata = { ...cell.metadata, editable: false, deletable: false };
  return cell.cell_type === 'code'
    ? { ...cell, metadata, outputs: [], execution_count: null }
    : { ...cell, metadata };
}
