/**
 * The model of the table. It works on the jobs that the page has loaded, and loads the others while
 * the table is visible: sorting, searching and selecting then need no answer from the server, and
 * events keep every row current.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';

import { createFilter, isFiltering, type JobFilter } from '../jobs/filter';
import type { Job } from '../jobs/job';
import type { IJobs } from '../tokens';
import { pressGate } from '../ui/press';
import {
  type Column,
  createColumns,
  DEFAULT_COLUMNS,
  findColumn
} from './columns';
import { Selection } from './selection';
import { sortByColumn, sortRunningFirst } from './sort';

/** How long changes of jobs are collected before the rows are ordered again, in milliseconds. */
const GATHER_MS = 100;

/** More jobs than this are loaded on request only: the page would need too much memory. */
const MAX_JOBS = 20_000;

export type Sort = { column: string; isDescending: boolean };

export type TableState = Required<JobFilter> & { sort: Sort | null };

const INITIAL_STATE: TableState = {
  state: 'all',
  query: '',
  notebook: null,
  group: null,
  sort: null
};

export class TableModel {
  constructor(
    readonly jobs: IJobs,
    trans: TranslationBundle
  ) {
    this.allColumns = createColumns(jobs, trans);
    jobs.changed.connect(this._onJobsChanged, this);
    jobs.removed.connect(this._onJobsChanged, this);
    jobs.conditionChanged.connect(this._onConditionChanged, this);
  }

  /** Something that the table shows has changed. */
  readonly changed = new Signal<this, void>(this);
  /** The user has changed filter or order. */
  readonly stateChanged = new Signal<this, TableState>(this);
  /** The user has chosen columns. */
  readonly columnsChanged = new Signal<this, readonly string[]>(this);
  /** The columns to choose from, without those of single parameters and metrics. */
  readonly allColumns: readonly Column[];
  readonly selection = new Selection();
  /** Counts the changes. */
  version = 0;
  /** What is being done to selected jobs, in words; empty if nothing is. */
  progress = '';

  get state(): TableState {
    return this._state;
  }

  /** Change filter or order. */
  set(changes: Partial<TableState>): void {
    this._state = { ...this._state, ...changes };
    this._update();
    this.stateChanged.emit(this._state);
  }

  /** Sort by a column: ascending, then descending, then not at all. */
  toggleSort(column: string): void {
    const { sort } = this._state;
    if (sort?.column !== column) {
      this.set({ sort: { column, isDescending: false } });
    } else {
      this.set({
        sort: sort.isDescending ? null : { column, isDescending: true }
      });
    }
  }

  get isFiltered(): boolean {
    return isFiltering(this._state);
  }

  /** The ids of the columns that are shown. */
  get columnIds(): readonly string[] {
    return this._columnIds;
  }

  /** Show the columns of these ids; unknown ones are ignored, and without any the default is used. */
  setColumns(ids: readonly string[]): void {
    const known = ids.filter(id => findColumn(this.allColumns, id) !== null);
    this._columnIds = known.length > 0 ? [...new Set(known)] : DEFAULT_COLUMNS;
    this._columns = null;
    this._update();
  }

  /** Show or hide a column. Columns keep the order in which they can be chosen. */
  toggleColumn(id: string): void {
    const isShown = this._columnIds.includes(id);
    const ids = isShown
      ? this._columnIds.filter(other => other !== id)
      : [...this._columnIds, id];
    const place = (each: string) => {
      const index = this.allColumns.findIndex(column => column.id === each);
      return index === -1 ? this.allColumns.length : index;
    };
    this.setColumns(ids.sort((a, b) => place(a) - place(b)));
    this.columnsChanged.emit(this._columnIds);
  }

  resetColumns(): void {
    this.setColumns([]);
    this.columnsChanged.emit([]);
  }

  get columns(): readonly Column[] {
    this._columns ??= this._columnIds.map(id =>
      findColumn(this.allColumns, id)!
    );
    return this._columns;
  }

  /** The jobs to show. The same array is returned until something changes. */
  get rows(): readonly Job[] {
    this._rows ??= this._sort(
      this.isFiltered
        ? this.jobs.all.filter(createFilter(this._state))
        : this.jobs.all
    );
    return this._rows;
  }

  /** The names of the jobs to show. */
  get names(): readonly string[] {
    this._names ??= this.rows.map(({ name }) => name);
    return this._names;
  }

  /** The notebooks and groups of the loaded jobs. */
  get choices(): { notebooks: readonly string[]; groups: readonly string[] } {
    if (this._choices === null) {
      const notebooks = new Set<string>();
      const groups = new Set<string>();
      for (const { notebook, group } of this.jobs.all) {
        notebooks.add(notebook);
        if (group !== null) {
          groups.add(group);
        }
      }
      this._choices = {
        notebooks: [...notebooks].sort(),
        groups: [...groups].sort()
      };
    }
    return this._choices;
  }

  /** The selected jobs, in the order of the rows. */
  get selectedJobs(): readonly Job[] {
    this._selectedJobs ??= this.rows.filter(({ name }) =>
      this.selection.has(name)
    );
    return this._selectedJobs;
  }

  /** Change the selection. */
  select(change: (selection: Selection) => void): void {
    change(this.selection);
    this._selectedJobs = null;
    this._emitChanged();
  }

  setProgress(progress: string): void {
    this.progress = progress;
    this._emitChanged();
  }

  /** Whether there are older jobs that are loaded on request only. */
  get mustAskForMore(): boolean {
    return this.jobs.hasMore && this.jobs.all.length >= MAX_JOBS;
  }

  /** Whether the table is visible. Older jobs are loaded meanwhile. */
  get isVisible(): boolean {
    return this._isVisible;
  }

  set isVisible(isVisible: boolean) {
    this._isVisible = isVisible;
    this._loadMore();
    if (isVisible) {
      this._update();
    }
  }

  /** Emitted when the model is disposed. */
  readonly disposed = new Signal<this, void>(this);

  dispose(): void {
    this.disposed.emit();
    clearTimeout(this._timer);
    pressGate.forget(this._update);
    Signal.disconnectReceiver(this);
    Signal.clearData(this);
  }

  private _sort(jobs: readonly Job[]): readonly Job[] {
    const { sort } = this._state;
    const column = sort && findColumn(this.allColumns, sort.column);
    return column
      ? sortByColumn(jobs, column, sort.isDescending)
      : sortRunningFirst(jobs);
  }

  private _onJobsChanged(): void {
    this._choices = null;
    this._timer ??= setTimeout(() => {
      this._timer = undefined;
      if (this._isVisible) {
        pressGate.run(this._update);
      }
    }, GATHER_MS);
  }

  private _onConditionChanged(): void {
    this._loadMore();
    this._onJobsChanged();
  }

  /** Load the next page of older jobs, unless a request is under way or has failed. */
  private _loadMore(): void {
    const { hasMore, isBusy, error } = this.jobs;
    if (this._isVisible && hasMore && !isBusy && error === null) {
      if (!this.mustAskForMore) {
        // In a task of its own: together with what a page of jobs causes it would be a pause.
        setTimeout(() => void this.jobs.loadMore(true));
      }
    }
  }

  private readonly _update = (): void => {
    this._rows = null;
    this._names = null;
    this._selectedJobs = null;
    if (this.selection.size > 0) {
      this.selection.retain(new Set(this.names));
    }
    this._emitChanged();
  };

  private _emitChanged(): void {
    this.version += 1;
    this.changed.emit();
  }

  private _state = INITIAL_STATE;
  private _columnIds = DEFAULT_COLUMNS;
  private _columns: readonly Column[] | null = null;
  private _rows: readonly Job[] | null = null;
  private _names: readonly string[] | null = null;
  private _selectedJobs: readonly Job[] | null = null;
  private _choices: {
    notebooks: readonly string[];
    groups: readonly string[];
  } | null = null;
  private _isVisible = false;
  private _timer: ReturnType<typeof setTimeout> | undefined;
}
