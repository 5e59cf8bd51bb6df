/**
 * Knows which open notebooks are being saved. JupyterLab takes two saves at a time for a conflict:
 * the second one finds that the first has changed the file, and asks the user what to keep.
 */
import { Dialog } from '@jupyterlab/apputils';
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { INotebookModel, INotebookTracker } from '@jupyterlab/notebook';
import { PromiseDelegate } from '@lumino/coreutils';
import type { Widget } from '@lumino/widgets';

type Context = DocumentRegistry.IContext<INotebookModel>;

export class RunningSaves {
  constructor(tracker: INotebookTracker | null) {
    tracker?.forEach(({ context }) => this._watch(context));
    tracker?.widgetAdded.connect((_, { context }) => this._watch(context));
    // A save that asks the user reports no end if he cancels it, so nobody waits for it.
    Dialog.tracker.widgetAdded.connect(
      (_, dialog) => void this._onDialogAdded(dialog)
    );
  }

  /** Resolves when a save of the notebook that is under way has ended, well or not. */
  async waitFor(context: Context): Promise<void> {
    await this._saves.get(context)?.promise;
  }

  private _watch(context: Context): void {
    context.saveState.connect(this._onSaveState, this);
    context.disposed.connect(this._end, this);
  }

  private _onSaveState(
    context: Context,
    state: DocumentRegistry.SaveState
  ): void {
    if (state !== 'started') {
      this._end(context);
    } else if (!this._saves.has(context)) {
      this._saves.set(context, new PromiseDelegate());
    }
  }

  private async _onDialogAdded(dialog: Widget): Promise<void> {
    await Promise.resolve(); // The dialog's constructor ends first, and gives it its class.
    if (!dialog.hasClass('jp-ToJobDialog')) {
      [...this._saves.keys()].forEach(context => this._end(context));
    }
  }

  private _end(context: Context): void {
    this._saves.get(context)?.resolve();
    this._saves.delete(context);
  }

  private readonly _saves = new Map<Context, PromiseDelegate<void>>();
}
