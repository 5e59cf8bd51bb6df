/**
 * The model of the submit dialog: choices, preflight's answer, and the state of sending. It has no
 * user interface; the form renders it and calls its methods.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import type { Catalog, Job, Problem } from '../api';
import {
  defaultDevice,
  defaultFlavor,
  listDevices,
  unavailableReason
} from '../jobs/catalog';
import { ApiError, hasCode, type IDialogApi } from '../jobs/client';
import type { Choices, CopyProgress } from '../jobs/job';
import type { INotebookSource } from '../source';
import { durationText } from '../ui/format';
import { EnvironmentForm } from './environment';
import { FileList } from './files';
import { findFormProblems, type TextFields } from './formProblems';
import type { RememberedChoices } from './memory';
import { ParameterForm } from './parameters';
import { type MergedPreflight, PreflightQuery } from './preflightQuery';
import { NO_KEY, SubmissionKey } from './submissionKey';
import { SweepForm } from './sweepForm';
import { until } from './until';

/** Backends whose queue takes priorities into account. */
const QUEUEING_BACKENDS = ['local', 'memory'];

/** One submission, from the first choice to the job. Only its own methods change its state. */
export class SubmitModel implements IDisposable {
  constructor(
    readonly source: INotebookSource,
    private readonly _api: IDialogApi,
    readonly trans: TranslationBundle,
    rememberedChoices: RememberedChoices = {},
    debounceMs?: number
  ) {
    this._setInitial(rememberedChoices);
    this._preflightQuery = new PreflightQuery(
      async choices => {
        await source.ready;
        return _api.checkSubmission({ ...source.toSubmission(), ...choices });
      },
      error => this._onPreflight(error),
      debounceMs
    );
  }

  /** Whether the backend has a queue, in which priority counts. */
  hasQueue = false;
  /** The outcome of the latest `send`. */
  submission: Promise<Job | null> = Promise.resolve(null);
  parameters!: ParameterForm;
  files!: FileList;
  environment!: EnvironmentForm;
  sweep!: SweepForm;
  texts!: TextFields;

  /** Something that the form shows has changed. */
  readonly changed = new Signal<this, void>(this);

  /** Counts the changes. */
  version = 0;

  /** The catalog; null until it is loaded. */
  catalog: Catalog | null = null;

  /** The error of the latest request, a submission or another one; null if it succeeded. */
  failure: { error: unknown; isSubmission: boolean } | null = null;

  /** The idempotency key of the submission that is being sent; null if none is. */
  sendingKey: string | null = null;

  copyProgress: CopyProgress | null = null;

  /** Whether the submission is being withdrawn, and it is not known yet if in time. */
  isWithdrawing = false;

  /** Whether the latest submission was withdrawn in time. */
  isWithdrawn = false;
  isDisposed = false;

  /** Whether preflight has not answered yet for the current choices. */
  get isChecking(): boolean {
    return this._preflightQuery.isPending;
  }

  /** Preflight's latest answer, which may be about earlier choices; null without any. */
  get preflight(): MergedPreflight | null {
    return this._preflightQuery.answer;
  }

  /**
   * What preflight says of the present flavor, device and isolation; null until it has answered for
   * them. The dialog says where the run works by this, and sends its plan along.
   */
  get presentPreflight(): MergedPreflight | null {
    return this._preflightQuery.answerFor(this._samples);
  }

  /** The flavor to submit with: the chosen one if it is available. */
  get flavor(): string | undefined {
    const { catalog, _flavor: flavor } = this;
    return catalog === null ||
      (flavor !== undefined && unavailableReason(catalog, flavor) === null)
      ? flavor
      : defaultFlavor(catalog);
  }

  /** The device to submit with: the chosen one if the flavor has it. */
  get device(): string | undefined {
    const { catalog, flavor, _device: device } = this;
    return catalog === null ||
      listDevices(catalog, flavor).some(([name]) => name === device)
      ? device
      : defaultDevice(catalog, flavor);
  }

  /** All choices, as fields of the request. */
  get choices(): Choices {
    const { maxRuntime, name, output, priority } = this.texts;
    const parameters = this.parameters.values;
    const inputs = this.files.paths;
    const env = this.environment.values;
    return {
      ...(this.flavor && { flavor: this.flavor }),
      ...(this.device && { device: this.device }),
      ...(Object.keys(parameters).length > 0 && { parameters }),
      ...(Object.keys(env).length > 0 && { env }),
      ...(this.source.takesFiles && inputs.length > 0 && { inputs }),
      ...(this.source.takesFiles &&
        this.files.isIsolated && { isolated: true }),
      ...(maxRuntime.trim() && { max_runtime: maxRuntime.trim() }),
      ...(name.trim() && { name: name.trim() }),
      ...(output.trim() && { output: output.trim() }),
      ...(priority.trim() && { priority: Number(priority) })
    };
  }

  /** Problems of the form, followed by those that preflight found. */
  get problems(): Problem[] {
    // Preflight's last answer is about other choices while a new one is awaited.
    const serverProblems = this.isChecking
      ? []
      : (this.preflight?.problems ?? []);
    return [...this._formProblems, ...serverProblems];
  }

  private get _formProblems(): Problem[] {
    return [...findFormProblems(this, this.trans), ...this.sweep.problems];
  }

  private get _samples(): Choices[] {
    return this.sweep.samples(this.choices);
  }

  /** Whether sending would fail, also because the server extension is missing or too old. */
  get isBlocked(): boolean {
    const error = this.failure?.error;
    return (
      this.problems.some(({ blocking }) => blocking) ||
      (error instanceof ApiError &&
        ['missing', 'outdated'].includes(error.failure))
    );
  }

  /** Set the catalog, a new or a cached one. */
  setCatalog(catalog: Catalog): void {
    this.catalog = catalog;
    if (!this._preflightQuery.isAbout(this._samples)) {
      this._checkChoices(true);
    }
    this._emitChanged();
  }

  /** Load the catalog and the backend's abilities, and keep the form usable meanwhile. */
  async refreshCatalog(): Promise<void> {
    this.failure = null;
    this._isLoading = true;
    this._emitChanged();
    try {
      const health = this._api.getHealth().catch(() => null);
      const catalog = await this._api.getCatalog();
      const backend = (await health)?.backend ?? '';
      this.hasQueue = QUEUEING_BACKENDS.includes(backend);
      this.setCatalog(catalog);
    } catch (error) {
      this._setFailure(error, false);
    } finally {
      this._isLoading = false;
      this._emitChanged();
    }
  }

  /**
   * Take over remembered choices that are not known yet, unless the user chooses something first.
   * Sending waits for them: two keystrokes send what was sent the last time.
   */
  awaitRemembered(remembered: Promise<RememberedChoices>): void {
    this._remembering = remembered
      .then(choices => {
        if (!this._isTouched && !this.isDisposed) {
          this._setInitial(choices);
          this._takePreflight();
          this._emitChanged();
        }
      })
      .catch(error => {
        console.warn('jupyter-to-job: no choices are remembered', error);
      })
      .finally(() => (this._remembering = null));
  }

  chooseFlavor(flavor: string): void {
    this.change(() => (this._flavor = flavor));
  }

  chooseDevice(device: string): void {
    this.change(() => (this._device = device));
  }

  setText(field: keyof TextFields, text: string): void {
    this.change(() => (this.texts[field] = text));
  }

  /** Change choices, parameters or files. Ignored while sending. */
  change(update: () => void): void {
    if (this.sendingKey === null) {
      this._isTouched = true;
      update();
      this.failure = null;
      this.isWithdrawn = false;
      if (this.catalog === null && !this._isLoading) {
        void this.refreshCatalog();
      }
      if (!this._formProblems.some(({ blocking }) => blocking)) {
        this._checkChoices(false);
      }
      this._emitChanged();
    }
  }

  /** Store the progress of copying, if it belongs to this submission. */
  onCopyProgress(_: unknown, progress: CopyProgress): void {
    if (progress.key === this.sendingKey) {
      this.copyProgress = progress;
      this._emitChanged();
    }
  }

  /** Send, one submission at a time; resolves to null if it was not accepted (see `failure`). */
  send(): Promise<Job | null> {
    if (this.sendingKey !== null || this.isBlocked) {
      return Promise.resolve(null);
    }
    return (this.submission = this._send());
  }

  /** Withdraw the submission that is being sent. The answer to sending tells if it was in time. */
  async withdraw(): Promise<void> {
    if (this.sendingKey !== null) {
      this.isWithdrawing = true;
      this._emitChanged();
      if (this.sendingKey !== NO_KEY) {
        await this._api.withdraw(this.sendingKey).catch(error => {
          console.warn('jupyter-to-job: could not be called off', error);
        });
      }
    }
  }

  dispose(): void {
    this.isDisposed = true;
    this._preflightQuery.dispose();
    Signal.clearData(this);
  }

  private async _send(): Promise<Job | null> {
    const isWaiting =
      this._remembering !== null || this.parameters.awaitsDefaults;
    this.sendingKey = isWaiting ? NO_KEY : this._idempotencyKey(this.choices);
    this.failure = null;
    this.isWithdrawn = false;
    this._emitChanged();
    try {
      await this._remembering;
      await this.source.ready;
      await until(this.changed, () => !this._awaitsDefaults);
      if (isWaiting && this.isWithdrawing) {
        this.isWithdrawn = true;
        return null;
      }
      if (this.parameters.hasErrors) {
        return null; // what was remembered cannot be sent
      }
      const choices = this.choices;
      const key = (this.sendingKey = this._idempotencyKey(choices));
      const plan = this.presentPreflight?.plan;
      return await this.sweep.submit(this.source, choices, key, plan);
    } catch (error) {
      if (hasCode(error, 'withdrawn')) {
        this.isWithdrawn = true;
        this._key.discard();
      } else {
        this._setFailure(error, true);
        if (hasCode(error, 'plan_changed', 'partly_submitted')) {
          this._checkChoices(true); // so that the user sees what is another now
        }
      }
      return null;
    } finally {
      this.sendingKey = null;
      this.copyProgress = null;
      this.isWithdrawing = false;
      this._emitChanged();
    }
  }

  /** Whether SEND waits for the notebook's defaults, which may drop remembered values. */
  private get _awaitsDefaults(): boolean {
    const isAsked = this._isLoading || this.isChecking;
    return this.parameters.awaitsDefaults && isAsked && !this.isWithdrawing;
  }

  private _setInitial(remembered: RememberedChoices): void {
    const { initialChoices, keepsParameters } = this.source;
    const initial: Choices = { ...remembered.choices, ...initialChoices };
    this._flavor = initial.flavor;
    this._device = initial.device;
    this.parameters = new ParameterForm(
      this.trans,
      initial.parameters,
      initialChoices.parameters ? {} : remembered.defaults,
      keepsParameters
    );
    this.files = new FileList(initial, remembered.declined);
    this.environment = new EnvironmentForm(initial.env, remembered.variables);
    this.sweep = new SweepForm(this);
    this.texts = {
      maxRuntime: durationText(initial.max_runtime),
      name: initial.name ?? '',
      output: initial.output ?? '',
      priority: String(initial.priority ?? '')
    };
  }

  private _checkChoices(isImmediate: boolean): void {
    this._preflightQuery.ask(this._samples, isImmediate);
  }

  private _onPreflight(error: unknown): void {
    if (error !== null) {
      this._setFailure(error, false);
      return;
    }
    this._takePreflight();
    this._emitChanged();
  }

  /** Show what preflight found, and ask again if that changes the choices: it suggests files. */
  private _takePreflight(): void {
    if (this.preflight === null) {
      return;
    }
    this.parameters.setParameters(this.preflight.parameters);
    this.files.onPreflight(this.preflight);
    if (!this._preflightQuery.isAbout(this._samples)) {
      this._checkChoices(true);
    }
  }

  private _setFailure(error: unknown, isSubmission: boolean): void {
    this.failure = { error, isSubmission };
    this._emitChanged();
  }

  private _idempotencyKey(choices: Choices): string {
    return this._key.of([this.sweep.withPlace(choices), this.sweep.fields]);
  }

  private _emitChanged(): void {
    if (!this.isDisposed) {
      this.version += 1;
      this.changed.emit();
    }
  }

  private _isLoading = false;
  private _flavor: string | undefined;
  private _device: string | undefined;
  private _remembering: Promise<unknown> | null = null;
  /** Whether the user has chosen something. */
  private _isTouched = false;
  private readonly _key = new SubmissionKey();
  private readonly _preflightQuery: PreflightQuery;
}
