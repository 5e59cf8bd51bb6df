/** What the model makes of the server's news, in whatever order they arrive. */
import { ApiError, type IClient } from '../src/client';
import type { Job, Submission } from '../src/job';
import { Jobs } from '../src/jobs';

const NOW = [0, 0];

/** A server in memory: what it is told to answer, in turn, and what it was asked. */
class Server implements IClient {
  readonly keys: string[] = [];
  listed: Job[] = [];

  constructor(
    private readonly _answers: (Job | ApiError | (() => Job))[] = []
  ) {}

  list(): Promise<Job[]> {
    return Promise.resolve(this.listed);
  }

  submit(_: Submission, idempotencyKey: string): Promise<Job> {
    this.keys.push(idempotencyKey);
    const answer = this._answers.shift()!;
    if (answer instanceof ApiError) {
      return Promise.reject(answer);
    }
    return Promise.resolve(typeof answer === 'function' ? answer() : answer);
  }
}

function job(changes: Partial<Job> = {}): Job {
  return {
    name: 'study-aaaaaaaa',
    notebook: 'study.ipynb',
    state: 'queued',
    reason: null,
    message: null,
    delivery: { state: 'pending', path: null, message: null },
    progress: null,
    ...changes
  };
}

const DELIVERED = job({
  state: 'succeeded',
  delivery: { state: 'delivered', path: 'study-aaaaaaaa.ipynb', message: null }
});

/** The model, and the names of the jobs whose end it told. */
function watch(server: Server): { jobs: Jobs; ends: string[] } {
  const jobs = new Jobs(server, NOW);
  const ends: string[] = [];
  jobs.settled.connect((_, { name, state }) => ends.push(`${name} ${state}`));
  return { jobs, ends };
}

const END = ['study-aaaaaaaa succeeded'];
const LOST = new ApiError('unreachable', 'no answer');

describe('Jobs', () => {
  it('tells the end once, when the delivery is decided', async () => {
    const { jobs, ends } = watch(new Server([job()]));
    await jobs.submit({ notebook: 'study.ipynb' });
    jobs.observe(job({ state: 'running' }));
    jobs.observe(job({ state: 'succeeded' }));
    expect(ends).toEqual([]);
    jobs.observe(DELIVERED);
    jobs.observe(DELIVERED);
    expect(ends).toEqual(END);
  });

  it('tells the end of a job whose events overtook the answer', async () => {
    const server = new Server([() => (jobs.observe(DELIVERED), job())]);
    const { jobs, ends } = watch(server);
    const answer = await jobs.submit({ notebook: 'study.ipynb' });
    expect(answer.state).toBe('succeeded');
    expect(ends).toEqual(END);
  });

  it('tells once where all events overtook the answer', async () => {
    const server = new Server([
      () => (jobs.observe(job()), jobs.observe(DELIVERED), job())
    ]);
    const { jobs, ends } = watch(server);
    await jobs.submit({ notebook: 'study.ipynb' });
    expect(ends).toEqual(END);
  });

  it('says nothing of jobs that had ended before it came', async () => {
    const server = new Server();
    server.listed = [DELIVERED];
    const { jobs, ends } = watch(server);
    await jobs.refresh();
    expect(jobs.get(DELIVERED.name)).toBe(DELIVERED);
    expect(ends).toEqual([]);
  });

  it('learns from a list what events did not bring', async () => {
    const server = new Server();
    server.listed = [job({ state: 'running' })];
    const { jobs, ends } = watch(server);
    await jobs.refresh();
    server.listed = [DELIVERED];
    await jobs.refresh();
    expect(ends).toEqual(END);
  });

  it('drops news that are older than the end', () => {
    const { jobs } = watch(new Server());
    jobs.observe(job());
    jobs.observe(DELIVERED);
    jobs.observe(job({ state: 'running' }));
    expect(jobs.get(DELIVERED.name)?.state).toBe('succeeded');
  });

  it('sends an unanswered submission again under the same key', async () => {
    const server = new Server([LOST, job()]);
    await watch(server).jobs.submit({ notebook: 'study.ipynb' });
    expect(server.keys).toHaveLength(2);
    expect(new Set(server.keys).size).toBe(1);
  });

  it('gives every submission a key of its own', async () => {
    const server = new Server([job(), job({ name: 'study-bbbbbbbb' })]);
    const { jobs } = watch(server);
    await jobs.submit({ notebook: 'study.ipynb' });
    await jobs.submit({ notebook: 'study.ipynb' });
    expect(new Set(server.keys).size).toBe(2);
  });

  it('gives up in the end, and at once where the server refused', async () => {
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
