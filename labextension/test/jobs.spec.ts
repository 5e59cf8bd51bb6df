/** What the model makes of the server's news, in whatever order they arrive. */
import { ChangedJobs } from '../src/jobs/changedJobs';
import { ApiError } from '../src/jobs/client';
import type { Job } from '../src/jobs/job';
import { Jobs } from '../src/jobs/model';
import { job } from './fixtures';
import {
  DELIVERED,
  history,
  LOST,
  names,
  NOT_FOUND,
  Server,
  watch
} from './jobsServer';

const END = ['study-aaaaaaaa succeeded'];

describe('jobs that events name', () => {
  it('are loaded together while a request is on its way', async () => {
    const server = new Server();
    const queries: unknown[] = [];
    server.list = ({ name }) => {
      queries.push(name);
      const listed = name!.split(',').map(each => job({ name: each }));
      return Promise.resolve({ jobs: listed, next: null });
    };
    const jobs = new Jobs(server);
    const changed = new ChangedJobs(server, jobs);
    const loaded = changed.add('a-aaaaaaaa');
    void changed.add('b-bbbbbbbb');
    void changed.add('c-cccccccc');
    void changed.add('b-bbbbbbbb');
    await loaded;
    expect(queries).toEqual(['a-aaaaaaaa', 'b-bbbbbbbb,c-cccccccc']);
    expect(jobs.all.length).toBe(3);
    await changed.add('a-aaaaaaaa');
    expect(queries.length).toBe(3);
  });

  it('are asked for again until there is an answer', async () => {
    const server = new Server();
    const jobs = new Jobs(server);
    const changed = new ChangedJobs(server, jobs, [0]);
    const list = server.list.bind(server);
    let failures = 4; // The jobs, then the list; and both once more.
    server.list = query => {
      failures -= 1;
      if (failures === 1) {
        expect(jobs.error).toBe(LOST);
      }
      return failures >= 0 ? Promise.reject(LOST) : list(query);
    };
    server.listed = [job()];
    await changed.add('study-aaaaaaaa');
    expect(names(jobs)).toEqual(['study-aaaaaaaa']);
  });

  it('are not taken for deleted by a list from before', async () => {
    const server = new Server([job()]);
    const jobs = new Jobs(server);
    const changed = new ChangedJobs(server, jobs);
    server.listed = [];
    const list = server.list.bind(server);
    let answer = () => {};
    server.list = async query => {
      const page = await list(query);
      if (query.name === undefined) {
        await new Promise<void>(resolve => (answer = resolve));
      }
      return query.name === undefined ? page : { jobs: [job()], next: null };
    };
    const refreshed = jobs.refresh();
    await jobs.submit({ notebook: 'study.ipynb' });
    const loaded = changed.add('study-aaaaaaaa');
    await new Promise(resolve => setTimeout(resolve));
    answer();
    await Promise.all([refreshed, loaded]);
    expect(names(jobs)).toEqual(['study-aaaaaaaa']);
  });
});

describe('the end of a job', () => {
  it('is told once, when the delivery is decided', async () => {
    const { jobs, ends } = watch(new Server([job()]));
    await jobs.submit({ notebook: 'study.ipynb' });
    jobs.update(job({ state: 'running' }));
    jobs.update(job({ state: 'succeeded' }));
    expect(ends).toEqual([]);
    jobs.update(DELIVERED);
    jobs.update(DELIVERED);
    expect(ends).toEqual(END);
  });

  it('is told where events overtook the answer', async () => {
    const server = new Server([() => (jobs.update(DELIVERED), job())]);
    const { jobs, ends } = watch(server);
    const answer = await jobs.submit({ notebook: 'study.ipynb' });
    expect(answer.state).toBe('succeeded');
    expect(ends).toEqual(END);
  });

  it('is told once where all events overtook the answer', async () => {
    const server = new Server([
      () => (jobs.update(job()), jobs.update(DELIVERED), job())
    ]);
    const { jobs, ends } = watch(server);
    await jobs.submit({ notebook: 'study.ipynb' });
    expect(ends).toEqual(END);
  });

  it('is told where it was sent before and had ended by then', async () => {
    const { jobs, ends } = watch(new Server([DELIVERED, DELIVERED]));
    await jobs.submit({ notebook: 'study.ipynb' }, 'one key');
    await jobs.submit({ notebook: 'study.ipynb' }, 'one key');
    expect(ends).toEqual(END);
  });

  it('is not told of jobs that had ended before', async () => {
    const server = new Server();
    server.listed = [DELIVERED];
    const { jobs, ends } = watch(server);
    await jobs.refresh();
    expect(jobs.get(DELIVERED.name)).toBe(DELIVERED);
    expect(ends).toEqual([]);
  });

  it('is learned from a list where events did not bring it', async () => {
    const server = new Server();
    server.listed = [job({ state: 'running' })];
    const { jobs, ends } = watch(server);
    await jobs.refresh();
    expect(jobs.unfinishedCount).toBe(1);
    server.listed = [DELIVERED];
    await jobs.refresh();
    expect(ends).toEqual(END);
    expect(jobs.unfinishedCount).toBe(0);
  });

  it('is not undone by older news', () => {
    const { jobs } = watch(new Server());
    jobs.update(job());
    jobs.update(DELIVERED);
    jobs.update(job({ state: 'running' }));
    expect(jobs.get(DELIVERED.name)?.state).toBe('succeeded');
  });
});

describe('a submission', () => {
  it('is sent again under the same key where no answer came', async () => {
    const server = new Server([LOST, job()]);
    await watch(server).jobs.submit({ notebook: 'study.ipynb' });
    expect(server.keys).toHaveLength(2);
    expect(new Set(server.keys).size).toBe(1);
  });

  it('has a key of its own, and so has a rerun', async () => {
    const server = new Server(history(3));
    const { jobs } = watch(server);
    await jobs.submit({ notebook: 'study.ipynb' });
    await jobs.submit({ notebook: 'study.ipynb' });
    await jobs.rerun('study-aaaaaaaa');
    expect(new Set(server.keys).size).toBe(3);
    expect(jobs.all).toHaveLength(3);
  });

  it('is the same rerun if asked for again where no answer came', async () => {
    const server = new Server([LOST, LOST, LOST, ...history(4)]);
    const { jobs } = watch(server);
    await expect(jobs.rerun('study-1')).rejects.toBe(LOST);
    await jobs.rerun('study-2');
    await jobs.rerun('study-1', { flavor: 'large' });
    await jobs.rerun('study-1');
    await jobs.rerun('study-1'); // it was answered: this is one more job
    const [first] = server.keys;
    const others = server.keys.slice(3);
    expect(others.map(key => key === first)).toEqual([
      false,
      false,
      true,
      false
    ]);
    expect(new Set(others).size).toBe(4);
  });

  it('is a new rerun once the one without an answer was seen to end', async () => {
    const [third, second] = history(2) as [Job, Job];
    const lost = [LOST, LOST, LOST];
    const server = new Server([...lost, second, ...lost, third]);
    const { jobs } = watch(server);
    const told: string[] = [];
    jobs.submitted.connect((_, { name }) => told.push(name));
    await expect(jobs.rerun('study-1')).rejects.toBe(LOST);
    jobs.update(second);
    await expect(jobs.rerun('study-1')).rejects.toBe(LOST);
    expect((await jobs.rerun('study-1')).name).toBe(third.name);
    expect(told).toEqual([third.name]);
    expect(server.keys[3]).toBe(server.keys[0]);
    expect(server.keys[4]).not.toBe(server.keys[0]);
    expect(new Set(server.keys.slice(4)).size).toBe(1);
  });

  it('is the same rerun if this ends while it is asked for again', async () => {
    const server = new Server([
      ...[LOST, LOST, LOST],
      () => (jobs.update(DELIVERED), job({ state: 'running' }))
    ]);
    const { jobs } = watch(server);
    await expect(jobs.rerun('study-1')).rejects.toBe(LOST);
    jobs.update(job({ state: 'running' }));
    expect((await jobs.rerun('study-1')).name).toBe(DELIVERED.name);
    expect(new Set(server.keys).size).toBe(1);
  });

  it('is the same rerun if a list says meanwhile that this has ended', async () => {
    const server = new Server([
      ...[LOST, LOST, LOST],
      async () => (await jobs.refresh(), DELIVERED)
    ]);
    server.listed = [DELIVERED];
    const { jobs } = watch(server);
    await expect(jobs.rerun('study-1')).rejects.toBe(LOST);
    expect((await jobs.rerun('study-1')).name).toBe(DELIVERED.name);
    expect(new Set(server.keys).size).toBe(1);
  });

  it('is given up in the end, and at once where the server refused', async () => {
    const away = new Server([LOST, LOST, LOST]);
    await expect(
      watch(away).jobs.submit({ notebook: 'study.ipynb' })
    ).rejects.toBe(LOST);
    expect(away.keys).toHaveLength(3);

    const refusal = new ApiError('refused', 'stale');
    const strict = new Server([refusal]);
    await expect(
      watch(strict).jobs.submit({ notebook: 'study.ipynb' })
    ).rejects.toBe(refusal);
    expect(strict.keys).toHaveLength(1);
  });
});

describe('the list', () => {
  it('is in order, whatever comes when', () => {
    const { jobs } = watch(new Server());
    const [a, b, c] = history(3) as [Job, Job, Job];
    [b, c, a, { ...b, priority: 1 }].forEach(each => jobs.update(each));
    expect(names(jobs)).toEqual([a.name, b.name, c.name]);
    expect(jobs.get(b.name)?.priority).toBe(1);
  });

  it('comes in pages', async () => {
    const server = new Server();
    server.listed = history(120);
    const { jobs } = watch(server);
    await jobs.refresh();
    expect([jobs.all.length, jobs.hasMore]).toEqual([50, true]);
    await Promise.all([jobs.loadMore(), jobs.loadMore()]);
    expect([jobs.all.length, jobs.hasMore]).toEqual([100, true]);
    await jobs.loadMore();
    expect([jobs.all.length, jobs.hasMore]).toEqual([120, false]);
    expect(names(jobs)).toEqual(server.listed.map(({ name }) => name));
  });

  it('is one request where a page holds all, and one more at a time', async () => {
    const server = new Server();
    server.listed = history(3);
    const { jobs } = watch(server);
    await Promise.all([jobs.refresh(), jobs.refresh(), jobs.refresh()]);
    expect(server.asked).toHaveLength(1);
    const first = jobs.refresh();
    await Promise.resolve();
    await Promise.all([first, jobs.refresh(), jobs.refresh()]);
    expect(server.asked).toHaveLength(3);
  });

  it('knows unfinished jobs that are older than its first page', async () => {
    const server = new Server();
    const old = job({ name: 'old', submitted: '00001', state: 'running' });
    server.listed = [...history(80), old];
    const { jobs, ends } = watch(server);
    await jobs.refresh();
    expect(jobs.unfinishedCount).toBe(1);
    server.listed[80] = { ...DELIVERED, name: 'old', submitted: '00001' };
    await jobs.refresh();
    expect(ends).toEqual(['old succeeded']);
  });

  it('asks for many unfinished jobs in few requests', async () => {
    const server = new Server();
    const waiting: Job[] = history(1200, 100).map(({ name, submitted }) =>
      job({ name, submitted })
    );
    server.listed = [...history(80), ...waiting];
    const get = jest.spyOn(server, 'get');
    const { jobs, ends } = watch(server);
    jobs.feed = 'live';
    await jobs.refresh();
    expect(jobs.unfinishedCount).toBe(1200);
    const asked = server.asked.length;
    const ended = waiting.slice(0, 120).map(({ name, submitted }) => ({
      ...DELIVERED,
      name,
      submitted
    }));
    server.listed = [...history(80), ...ended, ...waiting.slice(121)];
    await jobs.refresh();
    expect(jobs.unfinishedCount).toBe(1079);
    expect(ends).toHaveLength(120);
    expect(jobs.get(waiting[120]!.name)).toBeUndefined();
    expect(get).not.toHaveBeenCalled();
    // The newest, three pages of unfinished ones, and 121 names.
    expect(server.asked.length - asked).toBe(1 + 3 + 3);
  });

  it('loses what was deleted while nobody listened', async () => {
    const server = new Server();
    server.listed = history(120);
    const { jobs } = watch(server);
    await jobs.refresh();
    await jobs.loadMore();
    server.listed = server.listed.filter((_, index) => index !== 7);
    await jobs.refresh();
    expect(jobs.all).toEqual(server.listed.slice(0, 100));
    expect(jobs.get(`j-${900_000 - 7}`)).toBeUndefined();
  });

  it('learns what became of 500 jobs after a lost connection, and keeps the others', async () => {
    const server = new Server();
    const held: Job['delivery'] = { ...DELIVERED.delivery, state: 'held' };
    const listed = history(700);
    server.listed = listed.map(each => ({ ...each, delivery: held }));
    const { jobs } = watch(server);
    jobs.feed = 'live';
    await jobs.refresh();
    while (jobs.hasMore) {
      await jobs.loadMore();
    }
    jobs.feed = 'lost';
    server.listed[90] = listed[90]!;
    server.listed = server.listed.filter((_, index) => index !== 80);
    jobs.feed = 'live';
    await jobs.refresh();
    expect(jobs.all).toEqual(server.listed);
    const asked = server.asked.length;
    await jobs.refresh();
    expect(server.asked[asked]!.limit).toBe(50);
    expect(jobs.all).toHaveLength(699);
  });

  it('begins anew where more was missed than a page holds', async () => {
    const server = new Server();
    server.listed = history(60, 500);
    const { jobs } = watch(server);
    await jobs.refresh();
    await jobs.loadMore();
    server.listed = [...history(200), ...server.listed];
    await jobs.refresh();
    while (jobs.hasMore) {
      await jobs.loadMore();
    }
    expect(names(jobs)).toEqual(server.listed.map(({ name }) => name));
  });

  it.each([
    ['was loaded meanwhile', 'meanwhile'],
    ['was submitted while nobody listened', 'before']
  ])('begins anew although a job of the gap %s', async (_, when) => {
    const server = new Server();
    server.listed = history(60, 500);
    const { jobs } = watch(server);
    jobs.feed = 'live';
    await jobs.refresh();
    await jobs.loadMore();
    jobs.feed = 'lost';
    server.listed = [...history(200), ...server.listed];
    const load = () => jobs.update(server.listed[3]!);
    if (when === 'before') {
      load();
    } else {
      server.meanwhile = load;
    }
    jobs.feed = 'live';
    await jobs.refresh();
    while (jobs.hasMore) {
      await jobs.loadMore();
    }
    expect(names(jobs)).toEqual(server.listed.map(({ name }) => name));
  });

  it('keeps what it has where events brought more than a page', async () => {
    const server = new Server();
    server.listed = history(60, 500);
    const { jobs } = watch(server);
    jobs.feed = 'live';
    await jobs.refresh();
    await jobs.loadMore();
    server.listed = [...history(100), ...server.listed];
    server.listed.slice(0, 100).forEach(each => jobs.update(each));
    await jobs.refresh();
    expect([jobs.all.length, jobs.hasMore]).toEqual([160, false]);
  });

  it('believes events that came while it was asked for', async () => {
    const server = new Server();
    server.listed = [job()];
    const { jobs } = watch(server);
    await jobs.refresh();
    server.meanwhile = () => jobs.update(job({ state: 'running' }));
    await jobs.refresh();
    expect(jobs.get('study-aaaaaaaa')?.state).toBe('running');
    server.meanwhile = () => jobs.remove('study-aaaaaaaa');
    await jobs.refresh();
    expect(jobs.all).toEqual([]);
    expect(jobs.unfinishedCount).toBe(0);
  });

  it('tells why it could not be had, until it can', async () => {
    const server = new Server();
    const { jobs } = watch(server);
    server.meanwhile = () => {
      throw LOST;
    };
    await jobs.refresh();
    expect([jobs.error, jobs.isLoaded, jobs.isBusy]).toEqual([
      LOST,
      false,
      false
    ]);
    server.meanwhile = () => {};
    await jobs.refresh();
    expect([jobs.error, jobs.isLoaded]).toEqual([null, true]);
  });

  it('forgets a job that the server does not know', async () => {
    const { jobs } = watch(new Server([NOT_FOUND, job()]));
    const removed: string[] = [];
    jobs.removed.connect((_, name) => removed.push(name));
    jobs.update(job());
    await expect(jobs.cancel('study-aaaaaaaa')).rejects.toBe(NOT_FOUND);
    expect(removed).toEqual(['study-aaaaaaaa']);
    jobs.update(job({ state: 'running' }));
    expect(jobs.all).toEqual([]);
  });
});
