/** Notifications of a group's end, while a sweep is sent and after. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { CommandRegistry } from '@lumino/commands';

import type { IJobsApi } from '../src/jobs/client';
import type { Job } from '../src/jobs/job';
import { Jobs } from '../src/jobs/model';
import type { SweptJobs } from '../src/jobs/sweep';
import plugin from '../src/plugins/notifications';
import { DELIVERED, LOST } from './jobsServer';

const settle = () => new Promise(resolve => setTimeout(resolve, 5));

const running = (index: number, group = 'night'): Job => ({
  ...DELIVERED,
  name: `m-${index}`,
  group,
  submitted: String(index),
  state: 'running',
  delivery: { state: 'pending', path: null, message: null }
});
const ended = (
  index: number,
  state: Job['state'] = 'succeeded',
  group = 'night'
): Job => ({
  ...running(index, group),
  state,
  delivery: DELIVERED.delivery
});

function open() {
  const told: string[] = [];
  jest.spyOn(Notification, 'emit').mockImplementation(text => {
    told.push(text);
    return String(told.length);
  });
  const answers: {
    resolve: (swept: SweptJobs) => void;
    reject: (error: unknown) => void;
  }[] = [];
  const api = {
    submitSweep: () =>
      new Promise<SweptJobs>((resolve, reject) =>
        answers.push({ resolve, reject })
      ),
    list: () => Promise.resolve({ jobs: [], next: null })
  };
  const jobs = new Jobs(api as unknown as IJobsApi, []);
  const app = { commands: new CommandRegistry(), serviceManager: {} };
  void plugin.activate(app as unknown as JupyterFrontEnd, jobs, null, null);
  const send = (group?: string) => {
    const sending = jobs.submitSweep({
      notebook: 'study.ipynb',
      runs: [{}],
      ...(group !== undefined && { group })
    });
    return { sending, answer: answers.at(-1)! };
  };
  const end = async (job: Job) => {
    jobs.update(running(Number(job.submitted), job.group!));
    jobs.update(job);
    await settle();
  };
  return { jobs, told, send, end };
}

describe('the end of a group', () => {
  it('is told once all jobs of its sweep are sent and have ended', async () => {
    const { jobs, told, send, end } = open();
    const { sending, answer } = send();
    await end(ended(1));
    await end(ended(2, 'failed'));
    expect(told).toEqual([]);
    answer.resolve({
      group: 'night',
      jobs: [ended(1), ended(2, 'failed'), running(3)]
    });
    await sending;
    await settle();
    expect(told).toEqual(['3 jobs were submitted as the group night']);
    jobs.update(ended(3));
    await settle();
    expect(told.slice(1)).toEqual(['night: 3 jobs: 2 succeeded, 1 failed']);
  });

  it('is told once if all have ended before the answer', async () => {
    const { told, send, end } = open();
    const { sending, answer } = send();
    await end(ended(1));
    await end(ended(2));
    answer.resolve({ group: 'night', jobs: [ended(1), ended(2), ended(3)] });
    await sending;
    await settle();
    expect(told.slice(1)).toEqual(['night: 3 jobs: 3 succeeded']);
  });

  it('is told after a sweep that failed, too, and waits for the last one', async () => {
    const { told, send, end } = open();
    const first = send();
    const second = send();
    await end(ended(1));
    await end(ended(2));
    first.answer.reject(LOST);
    await expect(first.sending).rejects.toBe(LOST);
    await settle();
    expect(told).toEqual([]);
    second.answer.reject(LOST);
    await expect(second.sending).rejects.toBe(LOST);
    await settle();
    expect(told).toEqual(['night: 2 jobs: 2 succeeded']);
  });

  it('waits for no sweep of another group', async () => {
    const { jobs, told, send, end } = open();
    jobs.update(running(7, 'other'));
    jobs.update(running(8, 'other'));
    const { sending, answer } = send();
    await end(ended(7, 'failed', 'other'));
    expect(told).toHaveLength(1);
    expect(told[0]).toContain('m-7');
    await end(ended(1));
    await end(ended(2));
    await end(ended(8, 'succeeded', 'other'));
    expect(told.slice(1)).toEqual(['other: 2 jobs: 1 succeeded, 1 failed']);
    answer.resolve({ group: 'night', jobs: [ended(1), ended(2)] });
    await sending;
  });

  it('waits for the sweep that names it, though it has jobs already', async () => {
    const { jobs, told, send, end } = open();
    jobs.update(running(1));
    const other = send();
    const { sending, answer } = send('night');
    await end(ended(1));
    await end(ended(2));
    expect(told).toEqual([]);
    other.answer.reject(LOST);
    await expect(other.sending).rejects.toBe(LOST);
    answer.resolve({ group: 'night', jobs: [ended(2), running(3)] });
    await sending;
    await settle();
    jobs.update(ended(3));
    await settle();
    expect(told.slice(1)).toEqual(['night: 3 jobs: 3 succeeded']);
  });

  it('waits for a sweep that is sent again', async () => {
    const { told, send, end } = open();
    const first = send();
    await end(ended(1));
    first.answer.reject(LOST);
    await expect(first.sending).rejects.toBe(LOST);
    await settle();
    told.length = 0;
    const { sending, answer } = send();
    await end(ended(2));
    await end(ended(3, 'failed'));
    expect(told).toEqual([]);
    answer.resolve({ group: 'night', jobs: [ended(1), ended(2)] });
    await sending;
    await settle();
    expect(told.slice(1)).toEqual(['night: 3 jobs: 2 succeeded, 1 failed']);
  });

  it('is that of its job where a group has one', async () => {
    const { told, send, end } = open();
    const { sending, answer } = send();
    await end(ended(1));
    answer.reject(LOST);
    await expect(sending).rejects.toBe(LOST);
    await settle();
    expect(told).toHaveLength(1);
    expect(told[0]).toContain('m-1');
  });
});
