/**
 * What the dialog knows and decides: choices, the server's word on them, and how the sending goes.
 * It thinks and never shows; the form shows it, and calls its methods.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { UUID } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import { type ISignal, Signal } from '@lumino/signaling';

import type { Catalog, Job, Preflight, Problem } from '../api';
import { devicesOf, usualDevice, usualFlavor, whyNot } from '../jobs/catalog';
import { ApiError, type ICounter } from '../jobs/client';
import type { Choices, Copying } from '../jobs/job';
import type { ISource } from '../source';
import { parseDuration } from '../ui/format';
import { FileList } from './files';
import { Asker } from './latestQuery';
import type { Remembered } from './memory';
import { ParameterForm } from './parameters';

/** Choices that are plain text as they stand in the form; empty: not chosen. */
export type Texts = Record<
  'maxRuntime' | 'name' | 'output' | 'priority',
  string
>;

/** Why a request did not do what was asked; `sent`: it was the submission itself. */
export type Failed = { error: unknown; sent: boolean };

/** One submission, from the first choice to the job. */
export class SubmitModel implements IDisposable {
  constructor(
    readonly source: ISource,
    private readonly _server: ICounter,
    readonly trans: TranslationBundle,
    remembered: Remembered = {},
    rest?: number
  ) {
    const begin: Choices = { ...remembered.choices, ...source.given };
    this._flavor = begin.flavor;
    this._device = begin.device;
    this._env = begin.env;
    this.parameters = new ParameterForm(trans, begin.parameters);
    this.files = new FileList(begin, remembered.declined);
    this.texts = {
      maxRuntime: String(begin.max_runtime ?? ''),
      name: begin.name ?? '',
      output: begin.output ?? '',
      priority: String(begin.priority ?? '')
    };
    this._asker = new Asker(
      async choices => {
        await source.ready;
        return this._server.preflight({ ...source.look(), ...choices });
      },
      (answer, error) => this._answered(answer, error),
      rest
    );
  }

  /** Whether waiting jobs have an order that a priority could change. */
  hasLine = false;
  /** What becomes of the last sending. */
  sent: Promise<Job | null> = Promise.resolve(null);
  readonly parameters: ParameterForm;
  readonly files: FileList;
  readonly texts: Texts;

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
    return this._asker.isPending;
  }

  /** What went wrong with the last request; null where nothing did. */
  get failure(): Failed | null {
    return this._failure;
  }

  /** The key of what is being sent; null while nothing is. */
  get sending(): string | null {
    return this._sending;
  }

  get copying(): Copying | null {
    return this._copying;
  }

  /** Whether what is being sent was called off, and nobody knows yet whether in time. */
  get isCallingOff(): boolean {
    return this._isCallingOff;
  }

  /** Whether what was sent last was called off in time. */
  get isCalledOff(): boolean {
    return this._isCalledOff;
  }

  /** The flavor that will be asked for. */
  get flavor(): string | undefined {
    const catalog = this._catalog;
    if (catalog === null) {
      return this._flavor;
    }
    const chosen = this._flavor;
    return chosen !== undefined && whyNot(catalog, chosen) === null
      ? chosen
      : usualFlavor(catalog);
  }

  /** The device that will be asked for: the chosen one as long as the flavor has it. */
  get device(): string | undefined {
    const catalog = this._catalog;
    if (catalog === null) {
      return this._device;
    }
    const names = devicesOf(catalog, this.flavor).map(([name]) => name);
    return this._device !== undefined && names.includes(this._device)
      ? this._device
      : usualDevice(catalog, this.flavor);
  }

  /** Everything that was chosen, in the words of the request. */
  get choices(): Choices {
    const { maxRuntime, name, output, priority } = this.texts;
    const parameters = this.parameters.values;
    const inputs = this.files.chosen;
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
  get remembered(): Remembered {
    const { choices } = this;
    delete choices.env;
    return { choices, declined: this.files.declined };
  }

  /** What is to be known before sending: what is wrong in the form, then the server's word. */
  get problems(): Problem[] {
    // The last answer was about other choices as long as a new one is awaited.
    const heard = this.isChecking ? [] : (this._preflight?.problems ?? []);
    return [...this._ownProblems(), ...heard];
  }

  /** Whether sending would be in vain. */
  get isBlocked(): boolean {
    return this.problems.some(({ blocking }) => blocking) || this.isHopeless;
  }

  /** Whether there is nobody to send to: no server part, or one that cannot be used. */
  get isHopeless(): boolean {
    const error = this._failure?.error;
    return (
      error instanceof ApiError &&
      (error.failure === 'missing' || error.failure === 'outdated')
    );
  }

  /** Take a catalog, fresh or from before. */
  offer(catalog: Catalog): void {
    this._catalog = catalog;
    if (this._askedAbout !== JSON.stringify(this.choices)) {
      this._ask(true);
    }
    this._tell();
  }

  /** Ask the server what may be chosen now; the form stays as it is meanwhile. */
  async refresh(): Promise<void> {
    this._failure = null;
    this._tell();
    try {
      this.offer(await this._server.flavors());
    } catch (error) {
      this._fail(error, false);
    }
  }

  choose(flavor: string): void {
    this.change(() => (this._flavor = flavor));
  }

  chooseDevice(device: string): void {
    this.change(() => (this._device = device));
  }

  type(field: keyof Texts, text: string): void {
    this.change(() => (this.texts[field] = text));
  }

  /** Change something, parameters and files included; not while it is being sent. */
  change(by: () => void): void {
    if (this._sending === null) {
      by();
      this._failure = null;
      this._isCalledOff = false;
      if (this._ownProblems().length === 0) {
        this._ask(false);
      }
      this._tell();
    }
  }

  /** Take note of how the copying goes, of whichever submission. */
  observe(copying: Copying): void {
    if (copying.key === this._sending) {
      this._copying = copying;
      this._tell();
    }
  }

  /** Send; null where it was not accepted, which `failure` then explains. One at a time. */
  send(): Promise<Job | null> {
    if (this._sending !== null || this.isBlocked) {
      return Promise.resolve(null);
    }
    return (this.sent = this._send());
  }

  /** Call off what is being sent. Whether it was in time, the answer to the sending tells. */
  async callOff(): Promise<void> {
    if (this._sending !== null) {
      this._isCallingOff = true;
      this._tell();
      await this._server.callOff(this._sending).catch(error => {
        console.warn('jupyter-to-job: could not be called off', error);
      });
    }
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    this._asker.dispose();
    Signal.clearData(this);
  }

  private async _send(): Promise<Job | null> {
    const choices = this.choices;
    this._sending = this._keyOf(choices);
    this._failure = null;
    this._isCalledOff = false;
    this._tell();
    try {
      await this.source.ready;
      return await this.source.submit(choices, this._sending);
    } catch (error) {
      if (error instanceof ApiError && error.code === 'withdrawn') {
        this._isCalledOff = true;
        this._keyed = NEVER; // That key is spent: the server refuses it from now on.
      } else {
        this._fail(error, true);
      }
      return null;
    } finally {
      this._sending = null;
      this._copying = null;
      this._isCallingOff = false;
      this._tell();
    }
  }

  private _ownProblems(): Problem[] {
    const { maxRuntime, priority } = this.texts;
    const found: Problem[] = [];
    const add = (message: string, hint: string) =>
      found.push({ code: 'form', message, hint, blocking: true });
    if (this.parameters.isWrong) {
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
    return found;
  }

  private _ask(now: boolean): void {
    this._askedAbout = JSON.stringify(this.choices);
    this._asker.put(this.choices, now);
  }

  private _answered(answer: Preflight | null, error: unknown): void {
    if (answer === null) {
      this._askedAbout = null; // to be asked again
      this._fail(error, false);
      return;
    }
    this._preflight = answer;
    this.parameters.declare(answer.parameters);
    this.files.suggest(answer);
    if (this._askedAbout !== JSON.stringify(this.choices)) {
      this._ask(true); // The answer itself has changed the question: files are suggested, say.
    }
    this._tell();
  }

  private _fail(error: unknown, sent: boolean): void {
    this._failure = { error, sent };
    this._tell();
  }

  /** The same key for the same request, so that sending again is safe, and else a new one. */
  private _keyOf(choices: Choices): string {
    const request = JSON.stringify(choices);
    if (request !== this._keyed.request) {
      this._keyed = { request, key: UUID.uuid4() };
    }
    return this._keyed.key;
  }

  private _tell(): void {
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
  private _askedAbout: string | null = null;
  private _failure: Failed | null = null;
  private _sending: string | null = null;
  private _copying: Copying | null = null;
  private _isCallingOff = false;
  private _isCalledOff = false;
  private _keyed = NEVER;
  private _version = 0;
  private _isDisposed = false;
  private readonly _asker: Asker<Choices, Preflight>;
  private readonly _changed = new Signal<this, void>(this);
}

/** No request yet that a key belongs to. */
const NEVER = { request: '', key: '' };

function isPriority(text: string): boolean {
  return /^[+-]?\d{1,3}$/.test(text) && Math.abs(Number(text)) <= 100;
}
