/** Finds the newest job of a notebook, among the loaded jobs or else on the server. */
import type { IJobs } from '../tokens';
import type { IJobsApi } from './client';
import { type Job, resultPath } from './job';
import { PAGE_SIZE } from './pages';

/** Find the newest job of a notebook, or the newest whose result was delivered; null if none. */
export async function findNewestJob(
  { all, isLoaded, hasMore }: Pick<IJobs, 'all' | 'isLoaded' | 'hasMore'>,
  client: Pick<IJobsApi, 'list'>,
  notebook: string,
  hasResult: boolean
): Promise<Job | null> {
  // An older server does not know the query, and answers with the newest jobs of all.
  const isWanted = (job: Job) =>
    job.notebook === notebook && (!hasResult || resultPath(job) !== null);
  const loaded = all.find(isWanted);
  if (loaded !== undefined || (isLoaded && !hasMore)) {
    return loaded ?? null;
  }
  const query = hasResult
    ? { limit: PAGE_SIZE, state: 'succeeded,failed,cancelled' }
    : { limit: 1 };
  const { jobs } = await client.list({ ...query, notebook });
  return jobs.find(isWanted) ?? null;
}
