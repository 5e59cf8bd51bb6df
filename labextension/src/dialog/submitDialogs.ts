/**
 * Opens submit dialogs. It caches the catalog, so that the cards are shown at once, and remembers
 * choices.
 */
import { Dialog } from '@jupyterlab/apputils';
import type { IStateDB } from '@jupyterlab/statedb';
import type { TranslationBundle } from '@jupyterlab/translation';
import { UUID } from '@lumino/coreutils';

import type { Catalog, Job } from '../api';
import type { IDialogApi } from '../jobs/client';
import type { CopyProgress } from '../jobs/job';
import type { INotebookSource } from '../source';
import type { ISubmitDialog } from '../tokens';
import { SubmitDialog } from './dialog';
import { ChoiceMemory } from './memory';
import { SubmitModel } from './model';

/** Backends whose queue takes priorities into account. */
const QUEUEING_BACKENDS = ['local', 'memory'];

/** Opens submit dialogs, and submits without one. */
export class SubmitDialogs implements ISubmitDialog {
  constructor(
    private readonly _api: IDialogApi,
    state: IStateDB | null,
    private readonly _trans: TranslationBundle
  ) {
    this._memory = new ChoiceMemory(state);
  }

  /**
   * Only the page's own state is awaited before the dialog is shown, so that the dialog has the
   * focus before the user's next key.
   */
  async ask(source: INotebookSource): Promise<Job | null> {
    const remembered = source.ignoresMemory
      ? {}
      : await this._memory.load(source.path);
    const model = new SubmitModel(source, this._api, this._trans, remembered);
    this._model = model;
    model.hasQueue = this._hasQueue;
    if (this._catalog !== null) {
      model.setCatalog(this._catalog);
    }
    void model.refreshCatalog();
    this._loadHealth().catch(() => {
      // The model's own request reports why the server does not answer.
    });
    try {
      const job = await this._runDialog(model);
      if (job !== null && !source.ignoresMemory) {
        await this._memory.save(source.path, model.remembered);
      }
      return job;
    } finally {
      this._catalog = model.catalog ?? this._catalog;
      model.dispose();
      if (this._model === model) {
        this._model = null; // releases the notebook, too
      }
    }
  }

  async submit(source: INotebookSource): Promise<Job> {
    await source.ready;
    return source.submit(source.initialChoices, UUID.uuid4());
  }

  async submitAgain(source: INotebookSource): Promise<Job> {
    const remembered = await this._memory.load(source.path);
    await source.ready;
    return source.submit(
      { ...remembered.choices, ...source.initialChoices },
      UUID.uuid4()
    );
  }

  /** Load the catalog and the backend's abilities. The dialog reports a failure when it opens. */
  async preloadCatalog(): Promise<void> {
    try {
      await this._memory.load('');
      this._catalog = await this._api.getCatalog();
      await this._loadHealth();
    } catch (error) {
      console.warn('jupyter-to-job: the flavors are not known yet', error);
    }
  }

  /** Pass the progress of copying on to the open dialog. */
  onCopyProgress(progress: CopyProgress): void {
    this._model?.onCopyProgress(progress);
  }

  /**
   * Show the dialog while the notebook is being saved: an Enter after the shortcut is for SEND and
   * not for the cell. If saving opens a dialog of its own, ours gives way and comes back
   * afterwards.
   */
  private async _runDialog(model: SubmitModel): Promise<Job | null> {
    const { ready } = model.source;
    const dialog = new SubmitDialog(model);
    const onDialogAdded = (_: unknown, addedDialog: unknown) => {
      if (addedDialog !== dialog) {
        dialog.suspend();
      }
    };
    Dialog.tracker.widgetAdded.connect(onDialogAdded);
    let saveError: unknown = null;
    const saving = Promise.resolve(ready)
      .catch((error: unknown) => {
        saveError = error;
        dialog.suspend();
      })
      .finally(() => Dialog.tracker.widgetAdded.disconnect(onDialogAdded));
    const job = await dialog.run();
    if (!dialog.isSuspended) {
      return job;
    }
    await saving;
    if (saveError !== null) {
      throw saveError as Error;
    }
    return (await model.submission) ?? this._runDialog(model);
  }

  private async _loadHealth(): Promise<void> {
    const { backend } = await this._api.getHealth();
    this._hasQueue = QUEUEING_BACKENDS.includes(backend);
  }

  private readonly _memory: ChoiceMemory;
  private _catalog: Catalog | null = null;
  private _hasQueue = false;
  /** The model of the open dialog. */
  private _model: SubmitModel | null = null;
}
