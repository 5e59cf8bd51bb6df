/**
 * Jobs in the server's order. A change costs a binary search, because a list may hold 10,000 jobs.
 */
import { ArrayExt } from '@lumino/algorithm';

import { DistinctParameters } from './distinctParameters';
import { type EndCheck, isFinal, type Job } from './job';

/** Jobs by name and in order, newest first. */
export class OrderedJobs {
  /** All jobs, newest first. The array changes in place. */
  get list(): readonly Job[] {
    return this._list;
  }

  /** The sort key of the newest job; empty if there is none. */
  get newestKey(): string {
    const [newest] = this._list;
    return newest === undefined ? '' : sortKey(newest);
  }

  /** The number of jobs that have not ended. */
  get unfinishedCount(): number {
    return this._unfinishedCount;
  }

  /** The parameters in which jobs of a notebook differ. */
  readonly distinctParameters = new DistinctParameters();

  get(name: string): Job | undefined {
    return this._byName.get(name);
  }

  /** Add a job, or replace the job of the same name. */
  set(job: Job): void {
    const previous = this._byName.get(job.name);
    if (previous !== undefined && sortKey(previous) !== sortKey(job)) {
      this.delete(job.name);
    }
    const index = this._findIndex(sortKey(job));
    const isKnown = this._list[index]?.name === job.name;
    if (isKnown) {
      this._count(this._list[index]!, -1);
    }
    this._count(job, 1);
    this._list.splice(index, isKnown ? 1 : 0, job);
    this._byName.set(job.name, job);
  }

  /** Remove a job; returns whether it existed. */
  delete(name: string): boolean {
    const job = this._byName.get(name);
    if (job === undefined) {
      return false;
    }
    this._count(job, -1);
    this._list.splice(this._findIndex(sortKey(job)), 1);
    return this._byName.delete(name);
  }

  /** The index of the job with this sort key, or the index to insert it at. */
  private _findIndex(key: string): number {
    return ArrayExt.lowerBound(this._list, key, job =>
      sortKey(job) > key ? -1 : 1
    );
  }

  private _count(job: Job, by: 1 | -1): void {
    this._unfinishedCount += isFinal(job) ? 0 : by;
    if (by > 0) {
      this.distinctParameters.add(job);
    } else {
      this.distinctParameters.remove(job);
    }
  }

  private _unfinishedCount = 0;
  private readonly _byName = new Map<string, Job>();
  private readonly _list: Job[] = [];
}

/** Create a check whether a job is one of those that have ended by now. */
export function createEndCheck(jobs: readonly Job[]): EndCheck {
  const keys = new Set(jobs.filter(isFinal).map(sortKey));
  return job => keys.has(sortKey(job));
}

/** The key by which the server sorts: a greater text is a newer job. */
export function sortKey({ submitted, name }: Job): string {
  return `${submitted ?? ''} ${name}`;
}
