/**
 * Where dialogs are opened: it knows the last catalog, so that the cards are there at once, and
 * what was chosen for each notebook the last time.
 */
import { Dialog } from '@jupyterlab/apputils';
import type { IStateDB } from '@jupyterlab/statedb';
import type { TranslationBundle } from '@jupyterlab/translation';
import { UUID } from '@lumino/coreutils';

import type { Catalog, Job } from '../api';
import type { ICounter } from '../jobs/client';
import type { Copying } from '../jobs/job';
import type { ISource } from '../source';
import type { ISubmitDialog } from '../tokens';
import { SubmitDialog } from './dialog';
import { Memory } from './memory';
import { SubmitModel } from './model';

/** Backends in which waiting jobs stand in a line that a priority changes. */
const WITH_LINE = ['local', 'memory'];

/** Opens dialogs, and submits without one. */
export class Desk implements ISubmitDialog {
  constructor(
    private readonly _server: ICounter,
    state: IStateDB | null,
    private readonly _trans: TranslationBundle
  ) {
    this._memory = new Memory(state);
  }

  /**
   * Until the dialog is shown, only the page's own memory is awaited: it is there, and has the
   * focus, before the next key.
   */
  async ask(source: ISource): Promise<Job | null> {
    const remembered = source.forgets
      ? {}
      : await this._memory.recall(source.path);
    const model = new SubmitModel(
      source,
      this._server,
      this._trans,
      remembered
    );
    this._model = model;
    model.hasLine = this._hasLine;
    if (this._catalog !== null) {
      model.offer(this._catalog);
    }
    void model.refresh();
    this._meet().catch(() => {
      // What keeps the server from answering this, the model's own request tells.
    });
    try {
      const job = await this._show(model);
      if (job !== null && !source.forgets) {
        await this._memory.keep(source.path, model.remembered);
      }
      return job;
    } finally {
      this._catalog = model.catalog ?? this._catalog;
      model.dispose();
      if (this._model === model) {
        this._model = null; // and with it the notebook
      }
    }
  }

  async submit(source: ISource): Promise<Job> {
    await source.ready;
    return source.submit(source.given, UUID.uuid4());
  }

  async submitAgain(source: ISource): Promise<Job> {
    const last = await this._memory.recall(source.path);
    await source.ready;
    return source.submit({ ...last.choices, ...source.given }, UUID.uuid4());
  }

  /** Have the cards at hand before anybody asks; where it fails, the dialog tells why. */
  async prepare(): Promise<void> {
    try {
      await this._memory.recall('');
      this._catalog = await this._server.flavors();
      await this._meet();
    } catch (error) {
      console.warn('jupyter-to-job: the flavors are not known yet', error);
    }
  }

  /** Take note of how far the inputs of a submission are copied. */
  observe(copying: Copying): void {
    this._model?.observe(copying);
  }

  /**
   * Show the dialog while the notebook is being saved: an Enter that follows the shortcut is meant
   * for SEND, and not for the cell. Saving may have a question of its own, which then goes first.
   */
  private async _show(model: SubmitModel): Promise<Job | null> {
    const { ready } = model.source;
    const dialog = new SubmitDialog(model);
    const giveWay = (_: unknown, other: unknown) => {
      if (other !== dialog) {
        dialog.giveWay();
      }
    };
    Dialog.tracker.widgetAdded.connect(giveWay);
    let refusal: unknown = null;
    const saved = Promise.resolve(ready)
      .catch((error: unknown) => {
        refusal = error;
        dialog.giveWay();
      })
      .finally(() => Dialog.tracker.widgetAdded.disconnect(giveWay));
    const job = await dialog.ask();
    if (!dialog.hasGivenWay) {
      return job;
    }
    await saved;
    if (refusal !== null) {
      throw refusal as Error;
    }
    return (await model.sent) ?? this._show(model);
  }

  private async _meet(): Promise<void> {
    const { backend } = await this._server.health();
    this._hasLine = WITH_LINE.includes(backend);
  }

  private readonly _memory: Memory;
  private _catalog: Catalog | null = null;
  private _hasLine = false;
  /** The dialog's that was opened last, while it is open. */
  private _model: SubmitModel | null = null;
}
