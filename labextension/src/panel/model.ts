/** The model of the panel: jobs filtered, and grouped if wanted. */
import { Signal } from '@lumino/signaling';

import { createFilter, isFiltering, type StateFilter } from '../jobs/filter';
import type { Job } from '../jobs/job';
import type { IJobs } from '../tokens';
import { gatherSweeps, type SweepRow } from './sweeps';

/** A line of the list: the heading of a group, or a job. */
export type ListRow =
  | {
      kind: 'group';
      key: string;
      notebook: string;
      jobs: Job[];
      isOpen: boolean;
    }
  | SweepRow
  | JobLine;

/** A job; in a group that is shown as one line, `isMember`. */
export type JobLine = {
  kind: 'job';
  key: string;
  job: Job;
  isMember?: boolean;
};

/** The panel's state, which `set` changes. */
export class PanelModel {
  constructor(readonly jobs: IJobs) {
    jobs.changed.connect(this._emitChanged, this);
    jobs.removed.connect(this._emitChanged, this);
    jobs.conditionChanged.connect(this._emitChanged, this);
  }

  /** Something that the panel shows has changed. */
  readonly changed = new Signal<this, void>(this);

  /** Counts the changes. */
  version = 0;

  filter: StateFilter = 'all';

  /** The search text, see `JobFilter`. */
  query = '';

  isGrouped = false;

  /** The key of the line to bring into sight and focus; null if it was, or the user went on. */
  revealedKey: string | null = null;

  /** Bring a job into sight, and show what hides it. */
  reveal(name: string): void {
    const job = this.jobs.get(name);
    if (job !== undefined) {
      this.query = '';
      this.filter = 'all';
      this._collapsed.delete(job.notebook);
      if (job.group !== null) {
        this._openSweeps.add(job.group);
      }
      this.revealedKey = name;
      this._emitChanged();
    }
  }

  /** Change what is shown. */
  set(
    changes: Partial<Pick<PanelModel, 'filter' | 'query' | 'isGrouped'>>
  ): void {
    Object.assign(this, changes);
    this._closedFinds.clear();
    this.revealedKey = null;
    this._emitChanged();
  }

  /** Whether a filter or a search hides jobs. */
  get isFiltered(): boolean {
    return isFiltering({ state: this.filter, query: this.query });
  }

  /** Collapse or expand a group. */
  toggleGroup(notebook: string): void {
    if (!this._collapsed.delete(notebook)) {
      this._collapsed.add(notebook);
    }
    this.revealedKey = null;
    this._emitChanged();
  }

  /** Collapse or expand the line of a group. */
  toggleSweep(group: string): void {
    const toggled = this.isFiltered ? this._closedFinds : this._openSweeps;
    if (!toggled.delete(group)) {
      toggled.add(group);
    }
    this.revealedKey = null;
    this._emitChanged();
  }

  /** The lines to show. The same array is returned until something changes. */
  get rows(): readonly ListRow[] {
    if (this._rows === null) {
      const { all } = this.jobs;
      const filter = { state: this.filter, query: this.query };
      const jobs = this.isFiltered ? all.filter(createFilter(filter)) : all;
      this._rows = this.isGrouped
        ? this._groupByNotebook(jobs)
        : this._gather(jobs);
    }
    return this._rows;
  }

  dispose(): void {
    Signal.disconnectReceiver(this);
    Signal.clearData(this);
  }

  private _groupByNotebook(jobs: readonly Job[]): ListRow[] {
    const groups = new Map<string, Job[]>();
    for (const job of jobs) {
      const group = groups.get(job.notebook);
      if (group === undefined) {
        groups.set(job.notebook, [job]);
      } else {
        group.push(job);
      }
    }
    return [...groups].flatMap(([notebook, members]) => {
      const isOpen = !this._collapsed.has(notebook);
      const head: ListRow = {
        kind: 'group',
        key: `of ${notebook}`,
        notebook,
        jobs: members,
        isOpen
      };
      return isOpen ? [head, ...this._gather(members)] : [head];
    });
  }

  /** Make lines of jobs, and one of all jobs of a group. What a search finds in it is shown. */
  private _gather(jobs: readonly Job[]): ListRow[] {
    return gatherSweeps(jobs, this.jobs.all, group =>
      this.isFiltered
        ? !this._closedFinds.has(group)
        : this._openSweeps.has(group)
    );
  }

  private _emitChanged(): void {
    this._rows = null;
    this.version += 1;
    this.changed.emit();
  }

  private _rows: readonly ListRow[] | null = null;
  private readonly _collapsed = new Set<string>();
  private readonly _openSweeps = new Set<string>();
  /** Groups that the user has closed since a search opened them. */
  private readonly _closedFinds = new Set<string>();
}
