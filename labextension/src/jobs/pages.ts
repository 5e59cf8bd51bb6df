/** Loads what more than one request takes: all pages of a query, and jobs by their names. */
import type { Job, Page } from '../api';
import type { JobsQuery } from './client';

/** Jobs of a page of the list. */
export const PAGE_SIZE = 50;

/** Jobs of a page at most, as the server allows. */
export const MAX_PAGE_SIZE = 500;

/** Names of a request at most: they are a part of its address. */
export const MAX_NAMES = 50;

/** Loads a page of jobs. */
export type LoadPage = (query: JobsQuery) => Promise<Page>;

/** How many jobs to ask for so that a page has those that are known, if it may have that many. */
export function pageSizeFor(knownCount: number): number {
  return Math.min(Math.max(knownCount, PAGE_SIZE), MAX_PAGE_SIZE);
}

/** Load all jobs of a query. */
export async function loadAll(
  loadPage: LoadPage,
  query: Omit<JobsQuery, 'limit' | 'cursor'>
): Promise<Job[]> {
  const jobs: Job[] = [];
  let cursor: string | null | undefined;
  while (cursor !== null) {
    const page: Page = await loadPage({
      ...query,
      limit: MAX_PAGE_SIZE,
      ...(cursor !== undefined && { cursor })
    });
    jobs.push(...page.jobs);
    cursor = page.next;
  }
  return jobs;
}

/** Load all unfinished jobs, and of these names all others that have a job; returns the rest. */
export async function loadUnfinished(
  loadPage: LoadPage,
  names: readonly string[]
): Promise<Set<string>> {
  const missing = new Set(names);
  const state = 'queued,starting,running';
  const listed = await loadAll(loadPage, { state });
  listed.forEach(({ name }) => missing.delete(name));
  const ended = await loadNamed(loadPage, [...missing]);
  ended.forEach(({ name }) => missing.delete(name));
  return missing;
}

/** Load those of some jobs that exist. */
async function loadNamed(
  loadPage: LoadPage,
  names: readonly string[]
): Promise<Job[]> {
  const jobs: Job[] = [];
  for (let start = 0; start < names.length; start += MAX_NAMES) {
    const name = names.slice(start, start + MAX_NAMES).join(',');
    jobs.push(...(await loadPage({ name, limit: MAX_NAMES })).jobs);
  }
  return jobs;
}
