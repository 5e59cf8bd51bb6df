/** Loads all jobs of a group, once: the pages of a list have only the newest of them. */
import { loadAll, type LoadPage } from './pages';

export class GroupLoads {
  /** @param loadPage loads a page of jobs and stores them */
  constructor(private readonly _loadPage: LoadPage) {}

  /** Load all jobs of a group, unless that was done. A failed attempt can be repeated. */
  load(group: string): Promise<void> {
    let loading = this._loads.get(group);
    if (loading === undefined) {
      loading = loadAll(this._loadPage, { group }).then(() => undefined);
      this._loads.set(group, loading);
      loading.catch(() => this._loads.delete(group));
    }
    return loading;
  }

  /** Note that a job of a group is not loaded any more. */
  forget(group: string | null): void {
    this._loads.delete(group ?? '');
  }

  private readonly _loads = new Map<string, Promise<void>>();
}
