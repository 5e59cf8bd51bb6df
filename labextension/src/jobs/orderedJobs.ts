/** Jobs in the server's order, kept so at the cost of what changes: a list may hold 10,000. */
import type { Job } from './job';

/** Jobs by name, and newest first. */
export class OrderedJobs {
  /** All of them, newest first; changes in place. */
  get list(): readonly Job[] {
    return this._list;
  }

  get(name: string): Job | undefined {
    return this._byName.get(name);
  }

  /** Add a job, or put it in the place of what was known of it. */
  set(job: Job): void {
    const previous = this._byName.get(job.name);
    if (previous !== undefined && sortKey(previous) !== sortKey(job)) {
      this.delete(job.name);
    }
    const index = this._findIndex(sortKey(job));
    const isKnown = this._list[index]?.name === job.name;
    this._list.splice(index, isKnown ? 1 : 0, job);
    this._byName.set(job.name, job);
  }

  /** Forget a job; tells whether it was known. */
  delete(name: string): boolean {
    const job = this._byName.get(name);
    if (job === undefined) {
      return false;
    }
    this._list.splice(this._findIndex(sortKey(job)), 1);
    return this._byName.delete(name);
  }

  /** Where a job of that age stands, or would. */
  private _findIndex(key: string): number {
    let low = 0;
    let high = this._list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sortKey(this._list[middle]!) > key) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  private readonly _byName = new Map<string, Job>();
  private readonly _list: Job[] = [];
}

/** What the server orders jobs by: a greater text is a newer job. */
export function sortKey({ submitted, name }: Job): string {
  return `${submitted ?? ''} ${name}`;
}
