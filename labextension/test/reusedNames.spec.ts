/** Names of deleted jobs are used again: an idempotency key makes the name. */
import { DetailsModel } from '../src/details/model';
import { ChangedJobs } from '../src/jobs/changedJobs';
import type { IDetailsApi } from '../src/jobs/client';
import type { Job } from '../src/jobs/job';
import { Jobs } from '../src/jobs/model';
import { job, RECORD, until } from './fixtures';
import { DELIVERED, names, NOT_FOUND, Server, watch } from './jobsServer';

const NAME = 'study-aaaaaaaa';
const FIRST: Job = { ...DELIVERED, submitted: '2026-11-28T01:00:00.000Z' };
const SECOND: Job = job({ submitted: '2026-11-28T02:00:00.000Z' });

/** A model that knows these jobs, and what loads those that events name. */
async function create(...listed: Job[]) {
  const server = new Server([SECOND]);
  server.listed = listed;
  const { jobs, ends } = watch(server);
  await jobs.refresh();
  return { server, jobs, ends, changed: new ChangedJobs(server, jobs) };
}

describe('a job that has the name of a deleted one', () => {
  it.each([
    ['was known', [FIRST]],
    ['was not', []]
  ])('is listed where an event names it, and that one %s', async (_, known) => {
    const { server, jobs, ends, changed } = await create(...known);
    jobs.remove(NAME);
    server.listed = [SECOND];
    await changed.add(NAME);
    expect(jobs.get(NAME)).toBe(SECOND);
    server.listed = [{ ...FIRST, submitted: SECOND.submitted }];
    await changed.add(NAME);
    expect(ends).toEqual([`${NAME} succeeded`]);
  });

  it('is listed where a page of the list has it', async () => {
    const { server, jobs } = await create(FIRST);
    jobs.remove(NAME);
    server.listed = [SECOND];
    await jobs.refresh();
    expect(jobs.get(NAME)).toBe(SECOND);
  });

  it('is listed where this page submits it', async () => {
    const { jobs } = await create(FIRST);
    jobs.remove(NAME);
    await jobs.submit({ notebook: 'study.ipynb' }, 'nightly');
    expect(names(jobs)).toEqual([NAME]);
  });

  it('is listed where this page submits it among others', async () => {
    const { server, jobs } = await create(FIRST);
    jobs.remove(NAME);
    server.listed = [SECOND];
    await jobs.submitSweep({ notebook: 'study.ipynb', runs: [{}] }, 'nightly');
    expect(names(jobs)).toEqual([NAME]);
  });

  it('is told of at its end, as the deleted one was', async () => {
    const { server, jobs, ends, changed } = await create();
    jobs.update({ ...FIRST, state: 'running', delivery: SECOND.delivery });
    jobs.update(FIRST);
    jobs.remove(NAME);
    await jobs.submit({ notebook: 'study.ipynb' }, 'nightly');
    server.listed = [{ ...FIRST, submitted: SECOND.submitted }];
    await changed.add(NAME);
    expect(ends).toEqual([`${NAME} succeeded`, `${NAME} succeeded`]);
  });

  it.each(['by an event', 'by this page'])(
    'replaces it %s where nobody told of the deletion',
    async how => {
      const { server, jobs, ends, changed } = await create(FIRST);
      server.listed = [SECOND];
      await (how === 'by an event'
        ? changed.add(NAME)
        : jobs.submit({ notebook: 'study.ipynb' }, 'nightly'));
      expect(jobs.all).toEqual([SECOND]);
      expect(ends).toEqual([]);
    }
  );

  it('stays where a request for that one was answered late', async () => {
    const { server, jobs, changed } = await create(FIRST);
    let answer = () => {};
    server.get = () =>
      new Promise((_, reject) => (answer = () => reject(NOT_FOUND)));
    jobs.remove(NAME);
    const found = jobs.find(NAME);
    server.listed = [SECOND];
    await changed.add(NAME);
    answer();
    await expect(found).rejects.toBe(NOT_FOUND);
    expect(names(jobs)).toEqual([NAME]);
  });
});

it('is told in the details of the deleted job', async () => {
  const { server, jobs, changed } = await create(FIRST);
  const api = {
    get: () => Promise.resolve(SECOND),
    getRecord: () => Promise.resolve(RECORD),
    getCells: () => Promise.resolve([])
  };
  const model = new DetailsModel(NAME, jobs, api as unknown as IDetailsApi, 0);
  server.listed = [];
  jobs.remove(NAME);
  await until(() => model.isDeleted);
  expect(model.isDeleted).toBe(true);
  server.listed = [SECOND];
  await changed.add(NAME);
  expect(model.isDeleted).toBe(false);
  expect(model.job?.submitted).toBe(SECOND.submitted);

  // It may appear before the answer that there is none.
  let answer = () => {};
  server.get = () =>
    new Promise((_, reject) => (answer = () => reject(NOT_FOUND)));
  jobs.remove(NAME);
  await changed.add(NAME);
  answer();
  await new Promise(resolve => setTimeout(resolve)); // Whoever waits for the answer has it now.
  expect(model.isDeleted).toBe(false);
  model.dispose();
});

it('takes no answer from before a deletion for a new job', async () => {
  const { server, jobs, changed } = await create();
  server.listed = [FIRST];
  server.meanwhile = () => jobs.remove(NAME);
  await changed.add(NAME);
  await jobs.refresh();
  expect(jobs.all).toEqual([]);
});

it('keeps no job that was deleted before its submission was answered', async () => {
  const jobs: Jobs = new Jobs(
    new Server([
      () => {
        jobs.remove(NAME);
        return SECOND;
      }
    ])
  );
  await jobs.submit({ notebook: 'study.ipynb' });
  expect(jobs.all).toEqual([]);
});
