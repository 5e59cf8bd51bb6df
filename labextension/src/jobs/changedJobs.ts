/**
 * Loads the jobs that events name. Events carry nothing else, because whoever may hear them may not
 * be allowed to read jobs.
 */
import type { Client } from './client';
import type { Jobs } from './model';
import { MAX_NAMES } from './pages';

/** Delays before asking again after a failure, in milliseconds; the last one repeats. */
const RETRY_DELAYS_MS = [1000, 2000, 5000, 15_000, 30_000];

/** Jobs that have changed, and are being loaded. */
export class ChangedJobs {
  /** @param retryDelays delays before asking again after a failure, in milliseconds */
  constructor(
    private readonly _client: Pick<Client, 'list'>,
    private readonly _jobs: Jobs,
    private readonly _retryDelays: readonly number[] = RETRY_DELAYS_MS
  ) {}

  /** Load a job. Jobs that change during a request are loaded together, after it. */
  async add(name: string): Promise<void> {
    this._jobs.order.note(name);
    this._names.add(name);
    if (this._isLoading) {
      return;
    }
    this._isLoading = true;
    let failures = 0;
    while (this._names.size > 0) {
      const names = [...this._names].slice(0, MAX_NAMES);
      names.forEach(each => this._names.delete(each));
      const sentAt = this._jobs.order.now;
      try {
        const query = { name: names.join(','), limit: MAX_NAMES };
        const { jobs } = await this._client.list(query);
        jobs.forEach(job => this._jobs.update(job, sentAt));
        failures = 0;
      } catch {
        // The panel shows why the list cannot be had. The names are asked for again, for no other
        // event may come for them.
        names.forEach(each => this._names.add(each));
        await this._jobs.refresh();
        const delay = Math.min(failures++, this._retryDelays.length - 1);
        await new Promise(resolve =>
          setTimeout(resolve, this._retryDelays[delay])
        );
      }
    }
    this._isLoading = false;
  }

  private readonly _names = new Set<string>();
  private _isLoading = false;
}
