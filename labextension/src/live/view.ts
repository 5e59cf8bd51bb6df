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
    this._follow = this._follow.bind(this);
    for (const event of LEAVING) {
      this.node.addEventListener(event, this._follow, { passive: true });
    }
  }

  /** Whether the cell that runs, and then one that failed, is kept in sight: until somebody scrolls. */
  isFollowing = true;

  /** Show what has changed; `isLatest`: for now nothing more is to come. */
  sync(isLatest: boolean): void {
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
    const { current, cells, end } = this._fold;
    const index =
      end === null
        ? cells.findIndex(cell => cell === current)
        : cells.map(({ state }) => state).lastIndexOf('failed');
    if (this.isFollowing && index >= 0 && end?.state !== 'succeeded') {
      void this.scrollToItem(index, 'end').catch(() => {
        // Not rendered yet: the next piece tries again.
      });
    }
  }

  private _follow(event: Event): void {
    if (!(event instanceof KeyboardEvent) || MOVING.includes(event.key)) {
      this.isFollowing = false;
    }
  }

  /** What of each cell is in the page. */
  private _drawn = new WeakMap<LiveCell, readonly nbformat.IOutput[]>();
}

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
