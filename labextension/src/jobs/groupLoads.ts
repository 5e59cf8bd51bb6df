/** Loads all jobs of a group, once: the pages of a list have only the newest of them. */
import type { Page } from '../api';
import type { JobsQuery } from './client';

/** Jobs of a page: the server's maximum. */
const PAGE_SIZE = 500;

export class GroupLoads {
  /** @param loadPage loads a page of jobs and stores them */
  constructor(
    private readonly _loadPage: (query: JobsQuery) => Promise<Page>
  ) {}

  /** Load all jobs of a group, unless that was done. A failed attempt can be repeated. */
  load(group: string): Promise<void> {
    let loading = this._loads.get(group);
    if (loading === undefined) {
      loading = this._loadPages(group);
      this._loads.set(group, loading);
      loading.catch(() => this._loads.delete(group));
    }
    return loading;
  }

  /** Note that a job of a group is not loaded any more. */
  forget(group: string | null): void {
    this._loads.delete(group ?? '');
  }

  private async _loadPages(group: string): Promise<void> {
    let cursor: string | null | undefined;
    while (cursor !== null) {
      const next: string | undefined = cursor;
      const page = await this._loadPage({
        group,
        limit: PAGE_SIZE,
        ...(next !== undefined && { cursor: next })
      });
      cursor = page.next;
    }
  }

  private readonly _loads = new Map<string, Promise<void>>();
}
