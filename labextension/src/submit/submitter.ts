/** Carries out the submit command: finds the notebook, and decides whether to open the dialog. */
import { SemanticCommand } from '@jupyterlab/apputils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import type { Job } from '../jobs/job';
import type { INotebookSource } from '../source';
import type { ISubmitDialog } from '../tokens';
import { showError } from '../ui/errors';
import {
  createEditorSource,
  createFileSource,
  type SourceServices
} from './notebookSource';
import { parseChoices } from './submitArguments';

type Arguments = ReadonlyPartialJSONObject;

/** Submits the notebook that a call of the command means. */
export class Submitter {
  /** @param notifyReadiness called when `isReady` may have changed */
  constructor(
    private readonly _services: SourceServices,
    private readonly _dialog: ISubmitDialog,
    private readonly _tracker: INotebookTracker | null,
    readonly notifyReadiness: () => void
  ) {}

  /** Whether there is a notebook to submit, and it is not being submitted already. */
  isReady(args: Arguments): boolean {
    const target = this._findTarget(args);
    return target !== null && !this._submitting.has(target);
  }

  /** Submit; resolves to null if nothing was submitted, which the user then has been told. */
  async execute(args: Arguments): Promise<Job | null> {
    const target = this._findTarget(args);
    if (target === null || this._submitting.has(target)) {
      return null;
    }
    // One click makes one job: until there is an answer, the notebook cannot be submitted again.
    this._submitting.add(target);
    this.notifyReadiness();
    try {
      return await this._submit(this._createSource(target, args), args);
    } catch (error) {
      showError(error, this._services.trans);
      return null;
    } finally {
      this._submitting.delete(target);
      this.notifyReadiness();
    }
  }

  private _submit(
    source: INotebookSource,
    { ask }: Arguments
  ): Promise<Job | null> {
    if (ask === false) {
      return this._dialog.submitAgain(source);
    }
    const opensDialog =
      ask === true || Object.keys(source.initialChoices).length === 0;
    return opensDialog ? this._dialog.ask(source) : this._dialog.submit(source);
  }

  private _createSource(
    target: NotebookPanel | string,
    args: Arguments
  ): INotebookSource {
    const choices = parseChoices(args);
    if (typeof target !== 'string') {
      return createEditorSource(target.context, choices, this._services);
    }
    const dirtyPanel = this._tracker?.find(
      ({ context }) => context.path === target && context.model.dirty
    );
    return createFileSource(
      target,
      dirtyPanel !== undefined,
      choices,
      this._services
    );
  }

  /** The notebook that a call means: a panel, or a path. */
  private _findTarget(args: Arguments): NotebookPanel | string | null {
    if (typeof args.path === 'string') {
      return args.path;
    }
    if (typeof args.current === 'string') {
      const { current } = args;
      const { contents } = this._services;
      // The open notebook is saved first; one that is not open is on disk.
      const panel = this._tracker?.find(
        ({ context }) => contents.localPath(context.path) === current
      );
      return panel ?? current;
    }
    const id = args[SemanticCommand.WIDGET];
    return id === undefined
      ? (this._tracker?.currentWidget ?? null)
      : (this._tracker?.find(panel => panel.id === id) ?? null);
  }

  private readonly _submitting = new Set<NotebookPanel | string>();
}
