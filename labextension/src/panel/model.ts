/** The model of the panel: jobs filtered, and grouped if wanted. */
import { Signal } from '@lumino/signaling';

import type { Job } from '../jobs/job';
import type { IJobs } from '../tokens';

/** The filter by state. */
export type Filter = 'all' | 'waiting' | 'running' | 'succeeded' | 'failed';

/** A line of the list: the heading of a group, or a job. */
export type ListRow =
  | {
      kind: 'group';
      key: string;
      notebook: string;
      jobs: Job[];
      isOpen: boolean;
    }
  | { kind: 'job'; key: string; job: Job };

const FILTER_STATES: Record<Filter, readonly Job['state'][]> = {
  all: [],
  waiting: ['queued'],
  running: ['starting', 'running'],
  succeeded: ['succeeded'],
  failed: ['failed', 'cancelled']
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

  filter: Filter = 'all';

  /**
   * The search text. Each of its words must be in a job's name, notebook, flavor, device, reason or
   * message.
   */
  query = '';

  isGrouped = false;

  /** Change what is shown. */
  set(
    changes: Partial<Pick<PanelModel, 'filter' | 'query' | 'isGrouped'>>
  ): void {
    Object.assign(this, changes);
    this._emitChanged();
  }

  /** Whether a filter or a search hides jobs. */
  get isFiltered(): boolean {
    return this.filter !== 'all' || this.query.trim() !== '';
  }

  /** Collapse or expand a group. */
  toggleGroup(notebook: string): void {
    if (!this._collapsed.delete(notebook)) {
      this._collapsed.add(notebook);
    }
    this._emitChanged();
  }

  /** The lines to show. The same array is returned until something changes. */
  get rows(): readonly ListRow[] {
    if (this._rows === null) {
      const { all } = this.jobs;
      const jobs = this.isFiltered ? all.filter(this._createFilter()) : all;
      this._rows = this.isGrouped
        ? this._groupByNotebook(jobs)
        : jobs.map(toRow);
    }
    return this._rows;
  }

  dispose(): void {
    Signal.disconnectReceiver(this);
    Signal.clearData(this);
  }

  private _createFilter(): (job: Job) => boolean {
    const words = this.query.toLowerCase().split(/\s+/).filter(Boolean);
    const states = FILTER_STATES[this.filter];
    return job => {
      const text = [
        job.name,
        job.notebook,
        job.flavor,
        job.device,
        job.reason,
        job.message
      ]
        .join('\n')
        .toLowerCase();
      return (
        (states.length === 0 || states.includes(job.state)) &&
        words.every(word => text.includes(word))
      );
    };
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
      return isOpen ? [head, ...members.map(toRow)] : [head];
    });
  }

  private _emitChanged(): void {
    this._rows = null;
    this.version += 1;
    this.changed.emit();
  }

  private _rows: readonly ListRow[] | null = null;
  private readonly _collapsed = new Set<string>();
}

function toRow(job: Job): ListRow {
  return { kind: 'job', key: job.name, job };
}
