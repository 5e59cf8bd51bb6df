/**
 * Saves open notebooks, one save at a time. JupyterLab takes two at a time for a conflict: the
 * second one finds that the first has changed the file, and asks the user what to keep.
 */
import { Dialog } from '@jupyterlab/apputils';
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { INotebookModel, INotebookTracker } from '@jupyterlab/notebook';
import { PromiseDelegate } from '@lumino/coreutils';
import type { Widget } from '@lumino/widgets';

type Context = DocumentRegistry.IContext<INotebookModel>;

export class NotebookSaver {
  constructor(tracker: INotebookTracker | null) {
    tracker?.forEach(({ context }) => this.watch(context));
    tracker?.widgetAdded.connect((_, { context }) => this.watch(context));
    // A save that is cancelled in JupyterLab's dialog reports no end, so a dialog ends all waiting.
    Dialog.tracker.widgetAdded.connect(
      (_, dialog) => void this._onDialogAdded(dialog)
    );
  }

  /** Notice each save of a notebook: Ctrl S, autosave and ours. */
  watch(context: Context): void {
    context.saveState.connect(this._onSaveState, this);
    context.disposed.connect(this._end, this);
    context.model.contentChanged.connect(() => {
      if (this._running.has(context)) {
        this._changedMeanwhile.add(context);
      }
    });
  }

  /**
   * Whether a notebook has changes that are not in its file. JupyterLab takes what was changed
   * during a save for saved.
   */
  hasChanges(context: Context): boolean {
    return context.model.dirty || this._changedMeanwhile.has(context);
  }

  /** Resolves when a save of the notebook that is under way has ended, well or not. */
  async waitForRunning(context: Context): Promise<void> {
    await this._running.get(context)?.promise;
  }

  /** Save a notebook when no save of it is under way any more, and those asked for are done. */
  save(context: Context): Promise<void> {
    const saving = this._saveAfter(context, this._newest.get(context));
    this._newest.set(context, saving);
    return saving;
  }

  private async _saveAfter(
    context: Context,
    earlier: Promise<void> | undefined
  ): Promise<void> {
    await earlier?.catch(() => undefined);
    await this.waitForRunning(context);
    await context.save();
  }

  private _onSaveState(
    context: Context,
    state: DocumentRegistry.SaveState
  ): void {
    if (state !== 'started') {
      this._end(context);
    } else if (
      !this._running.has(context) &&
      Dialog.tracker.find(isOfOthers) === undefined
    ) {
      this._running.set(context, new PromiseDelegate());
      this._changedMeanwhile.delete(context);
    }
  }

  private async _onDialogAdded(dialog: Widget): Promise<void> {
    await Promise.resolve(); // The dialog's constructor ends first, and gives it its class.
    if (isOfOthers(dialog)) {
      [...this._running.keys()].forEach(context => this._end(context));
    }
  }

  private _end(context: Context): void {
    this._running.get(context)?.resolve();
    this._running.delete(context);
  }

  /** Saves that are under way. */
  private readonly _running = new Map<Context, PromiseDelegate<void>>();
  /** Notebooks that were changed during their last save. */
  private readonly _changedMeanwhile = new WeakSet<Context>();
  /** The newest save that was asked for here. */
  private readonly _newest = new WeakMap<Context, Promise<void>>();
}

/** Whether a dialog is not that of SUBMIT JOB, which is there while the notebook is saved. */
function isOfOthers(dialog: Widget): boolean {
  return !dialog.hasClass('jp-ToJobDialog');
}
