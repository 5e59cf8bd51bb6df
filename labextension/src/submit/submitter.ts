/** From a call of the command to a job: which notebook is meant, and whether to ask. */
import { SemanticCommand } from '@jupyterlab/apputils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import type { Job } from '../jobs/job';
import type { ISource } from '../source';
import type { ISubmitDialog } from '../tokens';
import { tellRefusal } from '../ui/errors';
import { asOnDisk, freeze, type Means } from './notebookSource';
import { choicesOf } from './submitArguments';

type Arguments = ReadonlyPartialJSONObject;

/** Submits what a call of the command means. */
export class Submitter {
  /** @param changed told when a notebook has become ready, or is no longer */
  constructor(
    private readonly _means: Means,
    private readonly _dialog: ISubmitDialog,
    private readonly _tracker: INotebookTracker | null,
    readonly changed: () => void
  ) {}

  /** Whether there is such a notebook, and it is not being submitted already. */
  isReady(args: Arguments): boolean {
    const subject = this._subject(args);
    return subject !== null && !this._busy.has(subject);
  }

  /** Submit; null where nothing was submitted, which the user then knows. */
  async execute(args: Arguments): Promise<Job | null> {
    const subject = this._subject(args);
    if (subject === null || this._busy.has(subject)) {
      return null;
    }
    // One click is one job: until it is answered, its notebook takes no other.
    this._busy.add(subject);
    this.changed();
    try {
      return await this._submit(this._source(subject, args), args);
    } catch (error) {
      tellRefusal(error, this._means.trans);
      return null;
    } finally {
      this._busy.delete(subject);
      this.changed();
    }
  }

  /** Have the dialog ready, once. */
  prepare(): void {
    if (!this._isPrepared) {
      this._isPrepared = true;
      void this._dialog.prepare();
    }
  }

  private _submit(source: ISource, { ask }: Arguments): Promise<Job | null> {
    if (ask === false) {
      return this._dialog.submitAgain(source);
    }
    const isAsked = ask === true || Object.keys(source.given).length === 0;
    return isAsked ? this._dialog.ask(source) : this._dialog.submit(source);
  }

  private _source(subject: NotebookPanel | string, args: Arguments): ISource {
    const given = choicesOf(args);
    if (typeof subject !== 'string') {
      return freeze(subject.context, given, this._means);
    }
    const open = this._tracker?.find(
      ({ context }) => context.path === subject && context.model.dirty
    );
    return asOnDisk(subject, open !== undefined, given, this._means);
  }

  /** The notebook that a call means: a panel, or a path. */
  private _subject(args: Arguments): NotebookPanel | string | null {
    if (typeof args.path === 'string') {
      return args.path;
    }
    const id = args[SemanticCommand.WIDGET];
    return id === undefined
      ? (this._tracker?.currentWidget ?? null)
      : (this._tracker?.find(panel => panel.id === id) ?? null);
  }

  private readonly _busy = new Set<NotebookPanel | string>();
  private _isPrepared = false;
}
