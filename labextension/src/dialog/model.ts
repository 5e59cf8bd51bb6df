/**
 * What the dialog knows and decides: choices, the server's word on them, and how the sending goes.
 * It thinks and never shows; the form shows it, and calls its methods.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { UUID } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import { type ISignal, Signal } from '@lumino/signaling';

import type { Catalog, Job, Preflight, Problem } from '../api';
import {
  listDevices,
  defaultDevice,
  defaultFlavor,
  unavailableReason
} from '../jobs/catalog';
import { ApiError, type IDialogApi } from '../jobs/client';
import type { Choices, CopyProgress } from '../jobs/job';
import type { INotebookSource } from '../source';
import { parseDuration } from '../ui/format';
import { FileList } from './files';
import { LatestQuery } from './latestQuery';
import type { RememberedChoices } from './memory';
import { ParameterForm } from './parameters';

/** Choices that are plain text as they stand in the form; empty: not chosen. */
export type TextFields = Record<
  'maxRuntime' | 'name' | 'output' | 'priority',
  string
>;

/** Why a request did not do what was asked; `sent`: it was the submission itself. */
export type RequestFailure = { error: unknown; isSubmission: boolean };

/** One submission, from the first choice to the job. */
export class SubmitModel implements IDisposable {
  constructor(
    readonly source: INotebookSource,
    private readonly _api: IDialogApi,
    readonly trans: TranslationBundle,
    rememberedChoices: RememberedChoices = {},
    debounceMs?: number
  ) {
    const initial: Choices = {
      ...rememberedChoices.choices,
      ...source.initialChoices
    };
    this._flavor = initial.flavor;
    this._device = initial.device;
    this._env = initial.env;
    this.parameters = new ParameterForm(trans, initial.parameters);
    this.files = new FileList(initial, rememberedChoices.declined);
    this.texts = {
      maxRuntime: String(initial.max_runtime ?? ''),
      name: initial.name ?? '',
      output: initial.output ?? '',
      priority: String(initial.priority ?? '')
    };
    this._preflightQuery = new LatestQuery(
      async choices => {
        await source.ready;
        return this._api.checkSubmission({
          ...source.toSubmission(),
          ...choices
        });
      },
      (answer, error) => this._onPreflight(answer, error),
      debounceMs
    );
  }

  /** Whether waiting jobs have an order that a priority could change. */
  hasQueue = false;
  /** What becomes of the last sending. */
  submission: Promise<Job | null> = Promise.resolve(null);
  readonly parameters: ParameterForm;
  readonly files: FileList;
  readonly texts: TextFields;

  /** Something that is shown has changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Counts the changes. */
  get version(): number {
    return this._version;
  }

  /** The catalog; null until it was heard of. */
  get catalog(): Catalog | null {
    return this._catalog;
  }

  get preflight(): Preflight | null {
    return this._preflight;
  }

  /** Whether the server is still being asked about the choices as they stand. */
  get isChecking(): boolean {
    return this._preflightQuery.isPending;
  }

  /** What went wrong with the last request; null where nothing did. */
  get failure(): RequestFailure | null {
    return this._failure;
  }

  /** The key of what is being sent; null while nothing is. */
  get sendingKey(): string | null {
    return this._sendingKey;
  }

  get copyProgress(): CopyProgress | null {
    return this._copyProgress;
  }

  /** Whether what is being sent was called off, and nobody knows yet whether in time. */
  get isWithdrawing(): boolean {
    return this._isWithdrawing;
  }

  /** Whether what was sent last was called off in time. */
  get isWithdrawn(): boolean {
    return this._isWithdrawn;
  }

  /** The flavor that will be asked for. */
  get flavor(): string | undefined {
    const catalog = this._catalog;
    if (catalog === null) {
      return this._flavor;
    }
    const chosen = this._flavor;
    return chosen !== undefined && unavailableReason(catalog, chosen) === null
      ? chosen
      : defaultFlavor(catalog);
  }

  /** The device that will be asked for: the chosen one as long as the flavor has it. */
  get device(): string | undefined {
    const catalog = this._catalog;
    if (catalog === null) {
      return this._device;
    }
    const names = listDevices(catalog, this.flavor).map(([name]) => name);
    return this._device !== undefined && names.includes(this._device)
      ? this._device
      : defaultDevice(catalog, this.flavor);
  }

  /** Everything that was chosen, in the words of the request. */
  get choices(): Choices {
    const { maxRuntime, name, output, priority } = this.texts;
    const parameters = this.parameters.values;
    const inputs = this.files.paths;
    return {
      ...(this.flavor && { flavor: this.flavor }),
      ...(this.device && { device: this.device }),
      ...(Object.keys(parameters).length > 0 && { parameters }),
      ...(this._env && { env: this._env }),
      ...(this.source.takesFiles && inputs.length > 0 && { inputs }),
      ...(this.source.takesFiles && this.files.isolated && { isolated: true }),
      ...(maxRuntime.trim() && { max_runtime: maxRuntime.trim() }),
      ...(name.trim() && { name: name.trim() }),
      ...(output.trim() && { output: output.trim() }),
      ...(priority.trim() && { priority: Number(priority) })
    };
  }

  /** What is to be remembered of this dialog; environment variables may hold secrets, and are not. */
  get remembered(): RememberedChoices {
    const { choices } = this;
    delete choices.env;
    return { choices, declined: this.files.declined };
  }

  /** What is to be known before sending: what is wrong in the form, then the server's word. */
  get problems(): Problem[] {
    // The last answer was about other choices as long as a new one is awaited.
    const heard = this.isChecking ? [] : (this._preflight?.problems ?? []);
    return [...this._formProblems(), ...heard];
  }

  /** Whether sending would be in vain. */
  get isBlocked(): boolean {
    return (
      this.problems.some(({ blocking }) => blocking) || this.isServerUnusable
    );
  }

  /** Whether there is nobody to send to: no server part, or one that cannot be used. */
  get isServerUnusable(): boolean {
    const error = this._failure?.error;
    return (
      error instanceof ApiError &&
      (error.failure === 'missing' || error.failure === 'outdated')
    );
  }

  /** Take a catalog, fresh or from before. */
  setCatalog(catalog: Catalog): void {
    this._catalog = catalog;
    if (this._checkedChoices !== JSON.stringify(this.choices)) {
      this._checkChoices(true);
    }
    this._emitChanged();
  }

  /** Ask the server what may be chosen now; the form stays as it is meanwhile. */
  async refreshCatalog(): Promise<void> {
    this._failure = null;
    this._emitChanged();
    try {
      this.setCatalog(await this._api.getCatalog());
    } catch (error) {
      this._setFailure(error, false);
    }
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

  /** Change something, parameters and files included; not while it is being sent. */
  change(update: () => void): void {
    if (this._sendingKey === null) {
      update();
      this._failure = null;
      this._isWithdrawn = false;
      if (this._formProblems().length === 0) {
        this._checkChoices(false);
      }
      this._emitChanged();
    }
  }

  /** Take note of how the copying goes, of whichever submission. */
  onCopyProgress(progress: CopyProgress): void {
    if (progress.key === this._sendingKey) {
      this._copyProgress = progress;
      this._emitChanged();
    }
  }

  /** Send; null where it was not accepted, which `failure` then explains. One at a time. */
  send(): Promise<Job | null> {
    if (this._sendingKey !== null || this.isBlocked) {
      return Promise.resolve(null);
    }
    return (this.submission = this._send());
  }

  /** Call off what is being sent. Whether it was in time, the answer to the sending tells. */
  async withdraw(): Promise<void> {
    if (this._sendingKey !== null) {
      this._isWithdrawing = true;
      this._emitChanged();
      await this._api.withdraw(this._sendingKey).catch(error => {
        console.warn('jupyter-to-job: could not be called off', error);
      });
    }
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    this._preflightQuery.dispose();
    Signal.clearData(this);
  }

  private async _send(): Promise<Job | null> {
    const choices = this.choices;
    this._sendingKey = this._idempotencyKey(choices);
    this._failure = null;
    this._isWithdrawn = false;
    this._emitChanged();
    try {
      await this.source.ready;
      return await this.source.submit(choices, this._sendingKey);
    } catch (error) {
      if (error instanceof ApiError && error.code === 'withdrawn') {
        this._isWithdrawn = true;
        this._lastRequest = NO_REQUEST; // That key is spent: the server refuses it from now on.
      } else {
        this._setFailure(error, true);
      }
      return null;
    } finally {
      this._sendingKey = null;
      this._copyProgress = null;
      this._isWithdrawing = false;
      this._emitChanged();
    }
  }

  private _formProblems(): Problem[] {
    const { maxRuntime, priority } = this.texts;
    const problems: Problem[] = [];
    const add = (message: string, hint: string) =>
      problems.push({ code: 'form', message, hint, blocking: true });
    if (this.parameters.hasErrors) {
      add(this.trans.__('A parameter has a value that it cannot take.'), '');
    }
    if (maxRuntime.trim() && parseDuration(maxRuntime.trim()) === null) {
      const hint = this.trans.__('Write it as 90s, 45m, 1h30m or 1d.');
      add(this.trans.__('The time limit is no duration.'), hint);
    }
    if (priority.trim() && !isPriority(priority.trim())) {
      const hint = this.trans.__('It is a whole number from -100 to 100.');
      add(this.trans.__('The priority is out of its range.'), hint);
    }
    return problems;
  }

  private _checkChoices(isImmediate: boolean): void {
    this._checkedChoices = JSON.stringify(this.choices);
    this._preflightQuery.ask(this.choices, isImmediate);
  }

  private _onPreflight(answer: Preflight | null, error: unknown): void {
    if (answer === null) {
      this._checkedChoices = null; // to be asked again
      this._setFailure(error, false);
      return;
    }
    this._preflight = answer;
    this.parameters.setParameters(answer.parameters);
    this.files.onPreflight(answer);
    if (this._checkedChoices !== JSON.stringify(this.choices)) {
      this._checkChoices(true); // The answer itself has changed the question: files are suggested, say.
    }
    this._emitChanged();
  }

  private _setFailure(error: unknown, isSubmission: boolean): void {
    this._failure = { error, isSubmission };
    this._emitChanged();
  }

  /** The same key for the same request, so that sending again is safe, and else a new one. */
  private _idempotencyKey(choices: Choices): string {
    const request = JSON.stringify(choices);
    if (request !== this._lastRequest.request) {
      this._lastRequest = { request, key: UUID.uuid4() };
    }
    return this._lastRequest.key;
  }

  private _emitChanged(): void {
    if (!this._isDisposed) {
      this._version += 1;
      this._changed.emit();
    }
  }

  private _flavor: string | undefined;
  private _device: string | undefined;
  private readonly _env: Record<string, string> | undefined;
  private _catalog: Catalog | null = null;
  private _preflight: Preflight | null = null;
  private _checkedChoices: string | null = null;
  private _failure: RequestFailure | null = null;
  private _sendingKey: string | null = null;
  private _copyProgress: CopyProgress | null = null;
  private _isWithdrawing = false;
  private _isWithdrawn = false;
  private _lastRequest = NO_REQUEST;
  private _version = 0;
  private _isDisposed = false;
  private readonly _preflightQuery: LatestQuery<Choices, Preflight>;
  private readonly _changed = new Signal<this, void>(this);
}

/** No request yet that a key belongs to. */
const NO_REQUEST = { request: '', key: '' };

function isPriority(text: string): boolean {
  return /^[+-]?\d{1,3}$/.test(text) && Math.abs(Number(text)) <= 100;
}
