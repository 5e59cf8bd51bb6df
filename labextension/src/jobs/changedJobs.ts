/**
 * Loads the jobs that events name. Events carry nothing else, because whoever may hear them may not
 * be allowed to read jobs.
 */
import type { Client } from './client';
import type { Jobs } from './model';

/** Jobs of a request at most. */
const MAX_NAMES = 50;

/** Jobs that have changed, and are being loaded. */
export class ChangedJobs {
  constructor(
    private readonly _client: Pick<Client, 'list'>,
    private readonly _jobs: Jobs
  ) {}

  /** Load a job. Jobs that change during a request are loaded together, after it. */
  async add(name: string): Promise<void> {
    this._names.add(name);
    if (this._isLoading) {
      return;
    }
    this._isLoading = true;
    while (this._names.size > 0) {
      await this._load([...this._names].slice(0, MAX_NAMES));
    }
    this._isLoading = false;
  }

  private async _load(names: string[]): Promise<void> {
    names.forEach(name => this._names.delete(name));
    try {
      const query = { name: names.join(','), limit: MAX_NAMES };
      const { jobs } = await this._client.list(query);
      jobs.forEach(job => this._jobs.update(job));
    } catch {
      await this._jobs.refresh(); // It keeps the error, for the panel to show.
    }
  }

  private readonly _names = new Set<string>();
  private _isLoading = false;
}
