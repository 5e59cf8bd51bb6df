/** A server of jobs in memory, and the model on it. */
import type { Page, SweptJobs } from '../src/api';
import { ApiError, type IJobsApi, type JobsQuery } from '../src/jobs/client';
import type { Job } from '../src/jobs/job';
import { Jobs } from '../src/jobs/model';
import { job } from './fixtures';

const NOW = [0, 0];

type Answer = Job | ApiError | (() => Job | Promise<Job>);

/** A server in memory: what it is told to answer, in turn, and what it was asked. */
export class Server implements IJobsApi {
  readonly keys: string[] = [];
  readonly asked: JobsQuery[] = [];
  listed: Job[] = [];
  /** Runs while a page is on its way. */
  meanwhile = () => {};

  constructor(private readonly _answers: Answer[] = []) {}

  list(which: JobsQuery): Promise<Page> {
    this.asked.push(which);
    const states = which.state?.split(',');
    const named = which.name?.split(',');
    const wanted = this.listed.filter(
      ({ name, state }) =>
        (states?.includes(state) ?? true) && (named?.includes(name) ?? true)
    );
    const start = Number(which.cursor ?? 0);
    const end = start + which.limit;
    const page = {
      jobs: wanted.slice(start, end),
      next: end < wanted.length ? String(end) : null
    };
    this.meanwhile();
    return Promise.resolve(page);
  }

  submitSweep(): Promise<SweptJobs> {
    return Promise.resolve({ group: 'night', jobs: this.listed });
  }

  get(name: string): Promise<Job> {
    const found = this.listed.find(each => each.name === name);
    return found === undefined
      ? Promise.reject(NOT_FOUND)
      : Promise.resolve(found);
  }

  submit(_: unknown, idempotencyKey: string): Promise<Job> {
    this.keys.push(idempotencyKey);
    return this._answer();
  }

  rerun(_: string, __: unknown, idempotencyKey: string): Promise<Job> {
    this.keys.push(idempotencyKey);
    return this._answer();
  }

  cancel(): Promise<Job> {
    return this._answer();
  }

  deliver(): Promise<Job> {
    return this._answer();
  }

  async delete(): Promise<void> {
    await this._answer();
  }

  private _answer(): Promise<Job> {
    const answer = this._answers.shift()!;
    if (answer instanceof ApiError) {
      return Promise.reject(answer);
    }
    return Promise.resolve(typeof answer === 'function' ? answer() : answer);
  }
}

export const DELIVERED = job({
  state: 'succeeded',
  delivery: { state: 'delivered', path: 'study-aaaaaaaa.ipynb', message: null }
});

/** The model, and the names of the jobs whose end it told. */
export function watch(server: Server): { jobs: Jobs; ends: string[] } {
  const jobs = new Jobs(server, NOW);
  const ends: string[] = [];
  jobs.settled.connect((_, { name, state }) => ends.push(`${name} ${state}`));
  return { jobs, ends };
}

/** So many ended jobs, newest first. */
export function history(count: number, first = 0): Job[] {
  return Array.from({ length: count }, (_, index) => {
    const number = String(900_000 - first - index);
    return { ...DELIVERED, name: `j-${number}`, submitted: number };
  });
}

export const names = ({ all }: Jobs) => all.map(({ name }) => name);

export const LOST = new ApiError('unreachable', 'no answer');
export const NOT_FOUND = new ApiError(
  'refused',
  'no such job',
  '',
  'not_found'
);
