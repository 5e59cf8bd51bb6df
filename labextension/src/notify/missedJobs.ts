/**
 * Finds the jobs that ended while no page of this server was open in this browser. The browser
 * keeps which jobs the user knows of.
 */
import type { Client } from '../jobs/client';
import { isSettled, type Job } from '../jobs/job';
import { sortKey } from '../jobs/orderedJobs';
import { BrowserStore } from '../ui/browserStore';

/** How many unsettled jobs are kept, and how many jobs are asked for at most. */
const MAX_JOBS = 500;

/** How many names one request has: proxies refuse URLs of more than 8 kB. */
const NAMES_AT_ONCE = 50;

/** What the user knew when a page was last in sight. */
export type Known = {
  /** The sort key of the newest job; empty if there was none. */
  newest: string;
  /** The jobs that were not settled. */
  unsettled: string[];
};

/** What the user knows of these jobs, newest first, once a page shows them. */
export function knownOf(jobs: readonly Job[]): Known {
  const unsettled = jobs.filter(job => !isSettled(job));
  return {
    newest: jobs.length > 0 ? sortKey(jobs[0]!) : '',
    unsettled: unsettled.slice(0, MAX_JOBS).map(({ name }) => name)
  };
}

/**
 * Find the jobs that were unsettled or unknown then, and are settled now; newest first.
 *
 * @param loaded the newest jobs of the server, newest first
 */
export async function findMissed(
  known: Known,
  loaded: readonly Job[],
  client: Pick<Client, 'list'>
): Promise<Job[]> {
  const reachesKnown = loaded.some(job => sortKey(job) <= known.newest);
  const jobs =
    loaded.length === 0 || reachesKnown
      ? loaded
      : (await client.list({ limit: MAX_JOBS })).jobs;
  const names = new Set(jobs.map(({ name }) => name));
  const absent = known.unsettled.filter(name => !names.has(name));
  const older: Job[] = [];
  for (let at = 0; at < absent.length; at += NAMES_AT_ONCE) {
    const name = absent.slice(at, at + NAMES_AT_ONCE).join(',');
    older.push(...(await client.list({ limit: MAX_JOBS, name })).jobs);
  }
  const unsettled = new Set(known.unsettled);
  return [...jobs, ...older].filter(
    job =>
      isSettled(job) && (unsettled.has(job.name) || sortKey(job) > known.newest)
  );
}

/** Keeps in the browser's storage what the user knows. */
export class KnownStore {
  constructor(scope: string) {
    this._store = new BrowserStore('known', scope);
  }

  /** What was kept; null if nothing was. */
  load(): Known | null {
    const value = this._store.load();
    return isKnown(value) ? value : null;
  }

  /** Keep it. If the storage is full or forbidden, nothing is told on return. */
  save(known: Known): void {
    this._store.save(known);
  }

  private readonly _store: BrowserStore;
}

function isKnown(value: unknown): value is Known {
  const { newest, unsettled } = (value ?? {}) as Partial<Known>;
  return typeof newest === 'string' && Array.isArray(unsettled);
}
