/** One job in detail: what the server tells of it, loaded again whenever it changes. */
import type * as nbformat from '@jupyterlab/nbformat';
import { Signal } from '@lumino/signaling';

import type { CellReceipt, Difference, JobRecord } from '../api';
import { type IDetailsApi, isNotFound } from '../jobs/client';
import type { Job } from '../jobs/job';
import type { IJobs } from '../tokens';
import { Resource } from './resource';

/** How long what was loaded counts as new, in milliseconds: a running job changes all the time. */
const REFRESH_MS = 2000;

/** The bytes of the journal from whose end the log is shown. */
const LOG_BYTES = 64 << 10;

/** How many there are if these have no text, for a picture may be longer: the most of an answer. */
const MAX_LOG_BYTES = 1 << 20;

/** The last text of a log, and whether there is more before it. */
export type LogEnding = { text: string; isCut: boolean };

export class DetailsModel {
  constructor(
    readonly name: string,
    readonly jobs: IJobs,
    readonly api: IDetailsApi,
    private readonly _refreshMs = REFRESH_MS
  ) {
    this._job = jobs.get(name) ?? null;
    jobs.changed.connect(this._onJobChanged, this);
    jobs.removed.connect(this._onJobRemoved, this);
    jobs.conditionChanged.connect(this._onConditionChanged, this);
    void this.refresh();
  }

  readonly changed = new Signal<this, void>(this);
  version = 0;
  /** Whether the job was deleted: what is shown is the last that was known. */
  isDeleted = false;
  readonly loadedJob = this._resource(() => this.api.get(this.name));
  readonly record = this._resource<JobRecord>(() =>
    this.api.getRecord(this.name)
  );
  readonly cells = this._resource<CellReceipt[]>(() =>
    this.api.getCells(this.name)
  );
  /** These are loaded when they are opened. */
  readonly snapshot = this._resource<nbformat.INotebookContent>(() =>
    this.api.getSnapshot(this.name)
  );
  readonly difference = this._resource<Difference>(() =>
    this.api.getDifference(this.name)
  );
  readonly log = this._resource<LogEnding>(async () => {
    const ending = await this._readEnding(LOG_BYTES);
    return ending.isCut && ending.text === ''
      ? this._readEnding(MAX_LOG_BYTES)
      : ending;
  });

  /** The job as it stands; null before it is known. */
  get job(): Job | null {
    return this._job;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    clearTimeout(this._timer);
    Signal.clearData(this);
  }

  /** Load the job, its record, the receipts of its cells, and the log if it is shown. */
  async refresh(): Promise<void> {
    if (this._isRefreshing) {
      this._isStale = true;
      return;
    }
    this._isRefreshing = true;
    this._isStale = false;
    await Promise.all([
      this._loadJobAndCells(),
      this.record.load(),
      this.log.value !== null && this.log.load()
    ]);
    this._emit();
    this._timer = setTimeout(() => {
      this._isRefreshing = false;
      if (this._isStale && !this._isDisposed) {
        void this.refresh();
      }
    }, this._refreshMs);
  }

  /** The receipts are loaded only if the run went on: for them the server reads its whole journal. */
  private async _loadJobAndCells(): Promise<void> {
    await this.loadedJob.load();
    if (this.loadedJob.error === null) {
      this._job = this.loadedJob.value; // After a failure an event may have told more than that.
    }
    const stage = this._job && stageOf(this._job);
    if (
      this.cells.value === null ||
      this.cells.error !== null ||
      this._stageOfCells !== stage
    ) {
      this._stageOfCells = stage;
      await this.cells.load();
    }
  }

  private async _readEnding(size: number): Promise<LogEnding> {
    const { text, next } = await this.api.readLogs(this.name, -size);
    return { text, isCut: next > size };
  }

  private _resource<T>(load: () => Promise<T>): Resource<T> {
    return new Resource(load, () => this._emit());
  }

  private _onJobChanged(_: IJobs, job: Job): void {
    if (job.name === this.name) {
      // A list has neither of these.
      const { events, notifications } = this._job ?? job;
      this._job = { ...job, events, notifications };
      this.isDeleted = false; // A deleted job's name may be used again.
      this._emit();
      void this.refresh();
    }
  }

  /** Ask the server: the job may only have fallen out of the list, to which an answer adds it. */
  private _onJobRemoved(_: IJobs, name: string): void {
    if (name === this.name) {
      this.jobs.find(name).catch((error: unknown) => {
        this.isDeleted ||=
          isNotFound(error) && this.jobs.get(name) === undefined;
        this._emit();
      });
    }
  }

  /** A successful request for the list means that loading can succeed, too. */
  private _onConditionChanged({ error, isBusy }: IJobs): void {
    const failure = this.loadedJob.error;
    const mayPass = failure !== null && !isNotFound(failure);
    if (mayPass && error === null && !isBusy) {
      void this.refresh();
    }
    this._emit();
  }

  private _emit(): void {
    if (!this._isDisposed) {
      this.version += 1;
      this.changed.emit();
    }
  }

  private _job: Job | null;
  /** How far the run was when the receipts were loaded. */
  private _stageOfCells: string | null = null;
  private _isDisposed = false;
  private _isRefreshing = false;
  private _isStale = false;
  private _timer: ReturnType<typeof setTimeout> | undefined;
}

/** How far a run is: which cell of which attempt, and whether it ended. */
function stageOf({ state, delivery, started, progress }: Job): string {
  return JSON.stringify([state, delivery.state, started, progress]);
}
