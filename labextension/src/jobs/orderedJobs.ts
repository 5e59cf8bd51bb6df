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
    const before = this._byName.get(job.name);
    if (before !== undefined && age(before) !== age(job)) {
      this.delete(job.name);
    }
    const at = this._place(age(job));
    const isKnown = this._list[at]?.name === job.name;
    this._list.splice(at, isKnown ? 1 : 0, job);
    this._byName.set(job.name, job);
  }

  /** Forget a job; tells whether it was known. */
  delete(name: string): boolean {
    const job = this._byName.get(name);
    if (job === undefined) {
      return false;
    }
    this._list.splice(this._place(age(job)), 1);
    return this._byName.delete(name);
  }

  /** Where a job of that age stands, or would. */
  private _place(wanted: string): number {
    let low = 0;
    let high = this._list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (age(this._list[middle]!) > wanted) {
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
export function age({ submitted, name }: Job): string {
  return `${submitted ?? ''} ${name}`;
}
