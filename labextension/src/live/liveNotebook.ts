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

import type { Fold, LiveCell, News } from './fold';

/** What a notebook is rendered with. */
export type Renderers = {
  rendermime: IRenderMimeRegistry;
  editorServices: IEditorServices;
  translator: ITranslator;
};

/** Shows a fold. */
export class LiveNotebook extends StaticNotebook {
  constructor(
    private readonly _fold: Fold,
    { rendermime, editorServices, translator }: Renderers
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
    for (const event of LEAVING) {
      const leave = (each: Event) => this._leave(each);
      this.node.addEventListener(event, leave, { passive: true });
    }
  }

  /** Show what has changed; `isLatest`: for now nothing more is to come. */
  sync(isLatest: boolean): void {
    this._isFollowing ||= this._isBack();
    const news = this._fold.take();
    if (news.isNew || this.model === null) {
      this._renew();
    } else {
      this._insert(news.inserted);
      for (const cell of news.changed) {
        this._show(cell);
      }
    }
    if (isLatest) {
      this._keepInSight();
    }
  }

  override dispose(): void {
    const { model } = this;
    super.dispose();
    model?.dispose();
  }

  private _renew(): void {
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
    this._drawn = new WeakMap();
    cells.forEach(cell => this._show(cell));
  }

  private _insert(inserted: News['inserted']): void {
    for (const [index, cell] of inserted) {
      this.model!.sharedModel.insertCell(index, toReadOnly(cell));
      this._show(cell);
    }
  }

  /** Bring a cell's outputs and prompt up to date, at the cost of what is another. */
  private _show(cell: LiveCell): void {
    const index = this._fold.cells.indexOf(cell);
    const shown = this.model!.cells.get(index) as CodeCellModel | undefined;
    if (shown?.type !== 'code') {
      return;
    }
    shown.executionState = cell.state === 'running' ? 'running' : 'idle';
    shown.executionCount = cell.executionCount;
    const before = this._drawn.get(cell) ?? [];
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
    this._drawn.set(cell, now);
  }

  private _keepInSight(): void {
    this._kept = this._newest;
    if (this._isFollowing && this._kept >= 0) {
      void this.scrollToItem(this._kept, 'end').catch(() => {
        // Not rendered yet: the next piece tries again.
      });
    }
  }

  /** The cell in which something happens: it runs, or it failed; -1: none. */
  private get _newest(): number {
    const { current, cells, end } = this._fold;
    if (end === null) {
      return cells.findIndex(cell => cell === current);
    }
    return end.state === 'succeeded'
      ? -1
      : cells.map(({ state }) => state).lastIndexOf('failed');
  }

  private _leave(event: Event): void {
    if (!(event instanceof KeyboardEvent) || MOVING.includes(event.key)) {
      this._isFollowing = false;
      this._left = performance.now();
    }
  }

  /** Whether somebody who scrolled away rests at the end again: of everything, or of that cell. */
  private _isBack(): boolean {
    const { scrollTop, scrollHeight, clientHeight } = this.outerNode;
    const { bottom } = this.outerNode.getBoundingClientRect();
    const cell = this.widgets[this._kept]?.node.getBoundingClientRect();
    const below = (cell?.bottom ?? Infinity) - bottom;
    const isAtEnd =
      scrollHeight - scrollTop - clientHeight < NEAR ||
      (below < NEAR && below > -clientHeight / 3);
    // Who is about to leave is still there at first.
    return isAtEnd && performance.now() - this._left > REST;
  }

  /** Whether the cell that runs, and then one that failed, is kept in sight: nobody reads elsewhere. */
  private _isFollowing = true;
  /** The cell that was to be in sight the last time. */
  private _kept = -1;
  /** When somebody looked elsewhere, in milliseconds. */
  private _left = 0;
  /** What of each cell is in the page. */
  private _drawn = new WeakMap<LiveCell, readonly nbformat.IOutput[]>();
}

/** How near is at the end, in pixels, and how long nobody moves who rests, in milliseconds. */
const NEAR = 40;
const REST = 1000;

/** By what somebody looks elsewhere. */
const LEAVING = ['wheel', 'touchmove', 'keydown', 'mousedown'];
const MOVING = ['PageUp', 'PageDown', 'Home', 'End', 'ArrowUp', 'ArrowDown'];

/** A cell without outputs, that cannot be changed. */
function toReadOnly({ cell }: LiveCell): nbformat.ICell {
  const metadata = { ...cell.metadata, editable: false, deletable: false };
  return cell.cell_type === 'code'
    ? { ...cell, metadata, outputs: [], execution_count: null }
    : { ...cell, metadata };
}
