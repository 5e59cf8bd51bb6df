/** The model of the view of results: the server's table, sorted, with its best run and a plot. */
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import type { IResultsApi } from '../jobs/client';
import type { Job } from '../jobs/job';
import { jobsOf, type ResultColumn, type Results } from '../jobs/sweep';
import type { IJobs } from '../tokens';
import {
  compareValues,
  isOutcome,
  listColumns,
  numberColumns,
  type Row,
  valueOf
} from './columns';

/** How long changes of jobs are collected before the table is loaded again, in milliseconds. */
const GATHER_MS = 1000;

/** Metrics of which less is better, by their names. */
const COSTS = /loss|err|rmse|mae|mse|perplexity|cost|time|seconds|latency/i;

/** What a sweep without parameters varies. */
const JOB_COLUMNS = ['flavor', 'device', 'notebook'];

export type Sorting = { column: string; isDescending: boolean };
export type Best = { column: string; goal: 'max' | 'min' };

/** What the plot shows: names of columns; `series` may be empty. */
export type PlotChoice = { x: string; y: string; series: string };

export class ResultsModel implements IDisposable {
  constructor(
    readonly group: string,
    readonly jobs: IJobs,
    private readonly _api: Pick<IResultsApi, 'getResults'>,
    private readonly _gatherMs = GATHER_MS
  ) {
    jobs.changed.connect(this._onJob, this);
    jobs.removed.connect(this._onRemoved, this);
    void this.refresh();
  }

  readonly changed = new Signal<this, void>(this);
  version = 0;
  results: Results | null = null;
  error: unknown = null;
  isDisposed = false;
  sorting: Sorting | null = null;
  showsAll = false;

  /** Change what is shown. */
  set(
    changes: Partial<Pick<ResultsModel, 'sorting' | 'showsAll' | 'best'>>
  ): void {
    Object.assign(this, changes);
    this._emitChanged();
  }

  setPlot(changes: Partial<PlotChoice>): void {
    this._plot = { ...this.plot, ...changes };
    this._emitChanged();
  }

  /** Sort by a column, and the other way round if it is that column's turn again. */
  sortBy(column: string): void {
    const isDescending =
      this.sorting?.column === column && !this.sorting.isDescending;
    this.set({ sorting: { column, isDescending } });
  }

  /** The loaded jobs of the group. */
  get members(): Job[] {
    return jobsOf(this.jobs.all, this.group);
  }

  get columns(): ResultColumn[] {
    return this.results === null
      ? []
      : listColumns(this.results, this.showsAll);
  }

  /** The columns of numbers. */
  get numberColumns(): ResultColumn[] {
    return this.results === null ? [] : numberColumns(this.results);
  }

  /** The numbers that came out of the runs: by them one is the best, and a plot shows them. */
  get outcomeColumns(): ResultColumn[] {
    return this.numberColumns.filter(isOutcome);
  }

  /** The rows, sorted. */
  get rows(): Row[] {
    const rows = (this.results?.rows ?? []) as Row[];
    const { sorting } = this;
    return sorting === null
      ? rows
      : [...rows].sort((a, b) =>
          compareValues(
            valueOf(a, sorting.column),
            valueOf(b, sorting.column),
            sorting.isDescending
          )
        );
  }

  /** What makes a run the best one: what was chosen, or else the first metric; null without any. */
  get best(): Best | null {
    const columns = this.outcomeColumns;
    const chosen = columns.find(({ name }) => name === this._best?.column);
    if (chosen !== undefined) {
      return this._best;
    }
    const metric = columns.find(({ kind }) => kind === 'metric');
    return metric === undefined
      ? null
      : { column: metric.name, goal: COSTS.test(metric.name) ? 'min' : 'max' };
  }

  set best(best: Best | null) {
    this._best = best;
  }

  /** The name of the best run; null while there is none. */
  get bestJob(): string | null {
    const { best } = this;
    if (best === null) {
      return null;
    }
    const rows = ((this.results?.rows ?? []) as Row[]).filter(
      row => valueOf(row, best.column) !== null
    );
    const [first] = rows.sort((a, b) =>
      compareValues(
        valueOf(a, best.column),
        valueOf(b, best.column),
        best.goal === 'max'
      )
    );
    return first === undefined ? null : String(first.job);
  }

  /** What the plot shows: what was chosen where it is still there. */
  get plot(): PlotChoice {
    const columns = this.results?.columns ?? [];
    const known = (name: string | undefined) =>
      columns.some(column => column.name === name) ? name : undefined;
    const varied = columns.filter(
      ({ kind, differs }) => kind === 'parameter' && differs
    );
    const parameter =
      this.numberColumns.find(column => varied.includes(column)) ?? varied[0];
    const jobColumn = JOB_COLUMNS.find(name =>
      columns.some(column => column.name === name && column.differs)
    );
    const y = this.best?.column ?? this.outcomeColumns[0]?.name;
    return {
      x: known(this._plot?.x) ?? parameter?.name ?? jobColumn ?? 'job',
      y: known(this._plot?.y) ?? y ?? '',
      series: known(this._plot?.series) ?? ''
    };
  }

  /** Load the table, or again after a load in progress; and jobs that the list may lack. */
  async refresh(): Promise<void> {
    clearTimeout(this._timer);
    this._timer = undefined;
    if (this._isLoading) {
      this._isStale = true; // The answer to an earlier request may come later.
      return;
    }
    this._isLoading = true;
    this._isStale = false;
    if (this._mayLackJobs) {
      this._mayLackJobs = false;
      this.jobs.loadGroup(this.group).then(
        () => this._emitChanged(),
        () => undefined // the table says what is wrong
      );
    }
    try {
      this.results = await this._api.getResults(this.group);
      this.error = null;
    } catch (error) {
      this.error = error;
    }
    this._isLoading = false;
    this._emitChanged();
    if (this._isStale && !this.isDisposed) {
      this._schedule();
    }
  }

  dispose(): void {
    this.isDisposed = true;
    clearTimeout(this._timer);
    Signal.disconnectReceiver(this);
    Signal.clearData(this);
  }

  /** Load the table again if a job of the group has ended, or is new. */
  private _onJob(_: IJobs, job: Job): void {
    if (job.group !== this.group) {
      return;
    }
    const standing = `${job.state} ${job.delivery.state}`;
    if (this._standings.get(job.name) !== standing) {
      this._standings.set(job.name, standing);
      this._schedule();
      this._emitChanged();
    }
  }

  private _onRemoved(): void {
    this._mayLackJobs = true;
    this._schedule();
  }

  private _schedule(): void {
    this._timer ??= setTimeout(() => void this.refresh(), this._gatherMs);
  }

  private _emitChanged(): void {
    if (!this.isDisposed) {
      this.version += 1;
      this.changed.emit();
    }
  }

  private readonly _standings = new Map<string, string>();
  private _best: Best | null = null;
  private _plot: PlotChoice | null = null;
  private _isLoading = false;
  private _isStale = false;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  /** Whether the list may lack jobs of the group: it has only the newest, or has dropped some. */
  private _mayLackJobs = true;
}
