/** Opens submit dialogs, and keeps the last catalog and the choices for the next ones. */
import { Dialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { Catalog, Job, Parameter } from '../api';
import type { IDialogApi } from '../jobs/client';
import type { Choices } from '../jobs/job';
import { DEFAULTS, type IPreferences } from '../settings/preferences';
import type { INotebookSource } from '../source';
import type { IJobs, ISubmitDialog } from '../tokens';
import { sweptText } from '../ui/groupProgress';
import { mayBeRounded, requireExact } from '../ui/rounding';
import { showToast } from '../ui/toast';
import { withDefaults } from './defaultChoices';
import { SubmitDialog } from './dialog';
import {
  ChoiceMemory,
  type KnownJobs,
  type Memories,
  type RememberedChoices
} from './memory';
import { SubmitModel } from './model';
import { hasNewDefault, isFloat } from './parameters';
import { UnansweredSubmissions } from './unansweredSubmissions';

/** Opens submit dialogs, and submits without one. */
export class SubmitDialogs implements ISubmitDialog {
  /** @param scope as `serverScope` has it */
  constructor(
    private readonly _api: IDialogApi,
    private readonly _jobs: KnownJobs & Pick<IJobs, 'copyProgressed'>,
    scope: string,
    private readonly _trans: TranslationBundle,
    private readonly _settings: IPreferences | null = null
  ) {
    this._memory = new ChoiceMemory(_jobs, scope);
    this._unanswered = new UnansweredSubmissions(_jobs);
  }

  /** Nothing is awaited before the dialog is shown: it has the focus before the user's next key. */
  async ask(source: INotebookSource): Promise<Job | null> {
    const memories = source.ignoresMemory
      ? { now: {}, later: null }
      : this._loadMemories(source.path);
    const model = new SubmitModel(source, this._api, this._trans, memories.now);
    if (memories.later !== null) {
      model.awaitRemembered(memories.later);
    }
    this._jobs.copyProgressed.connect(model.onCopyProgress, model);
    if (this._catalog !== null) {
      model.setCatalog(this._catalog);
    }
    void model.refreshCatalog();
    try {
      const job = await this._runDialog(model);
      if (job !== null && !source.ignoresMemory) {
        this._memory.save(source.path, job, {
          declined: model.files.declinedPaths,
          variables: model.environment.names,
          defaults: model.parameters.changedDefaults
        });
      }
      return job;
    } finally {
      this._catalog = model.catalog ?? this._catalog;
      model.dispose();
      void model.submission.then(() => this._tellRemainder(model));
    }
  }

  submit(source: INotebookSource): Promise<Job> {
    return this._unanswered.send(source, null);
  }

  async submitAgain(source: INotebookSource): Promise<Job> {
    const { now, later } = this._loadMemories(source.path);
    const remembered = (await later) ?? now;
    const job = await this._unanswered.send(source, () =>
      this._choicesFor(source, remembered)
    );
    if (source.initialChoices.parameters === undefined) {
      this._memory.save(source.path, job, remembered);
    }
    return job;
  }

  /**
   * The remembered choices, without values of parameters that the notebook has changed since.
   *
   * @throws CannotSubmit if the browser may have rounded one of the others.
   */
  private async _choicesFor(
    source: INotebookSource,
    { choices = {}, defaults }: RememberedChoices
  ): Promise<Choices> {
    const remembered = Object.entries(choices.parameters ?? {});
    const isSure =
      defaults === undefined &&
      !remembered.some(([, value]) => mayBeRounded(value));
    if (
      remembered.length === 0 ||
      isSure ||
      source.initialChoices.parameters !== undefined
    ) {
      return choices;
    }
    const submission = { ...source.toSubmission(), ...choices };
    const answer = await this._api
      .checkSubmission(submission)
      .catch(() => null);
    const findNames = (isMeant: (parameter: Parameter) => boolean) =>
      new Set(answer?.parameters.filter(isMeant).map(({ name }) => name));
    const renewed = findNames(each => hasNewDefault(each, defaults ?? {}));
    const floats = findNames(isFloat);
    const kept = remembered.filter(([name]) => !renewed.has(name));
    requireExact(
      kept.filter(([name]) => !floats.has(name)),
      this._trans
    );
    return { ...choices, parameters: Object.fromEntries(kept) };
  }

  /** Load what is remembered of a notebook, with what the user has set for all of them. */
  private _loadMemories(path: string): Memories {
    const { now, later } = this._memory.load(path);
    const preferences = this._settings?.current;
    return preferences === undefined
      ? { now, later }
      : {
          now: withDefaults(now, preferences),
          later: later?.then(each => withDefaults(each, preferences)) ?? null
        };
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
    const saving = Promise.resolve(ready)
      .catch(() => dialog.suspend())
      .finally(() => Dialog.tracker.widgetAdded.disconnect(onDialogAdded));
    const job = await dialog.run();
    if (!dialog.isSuspended) {
      return job;
    }
    await saving;
    await ready; // rejects if saving failed
    return (await model.submission) ?? this._runDialog(model);
  }

  /** Tell what was submitted of a sweep that was called off, where no other notification does. */
  private _tellRemainder({ sweep: { remainder } }: SubmitModel): void {
    const toasts = this._settings?.current.toasts ?? DEFAULTS.toasts;
    if (remainder !== null && toasts !== 'all') {
      const text = sweptText(remainder, this._trans);
      showToast({ type: 'info', text }, this._trans);
    }
  }

  private readonly _memory: ChoiceMemory;
  private readonly _unanswered: UnansweredSubmissions;
  private _catalog: Catalog | null = null;
}
