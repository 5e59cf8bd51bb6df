/** The numbers of the status bar. */
import type { IJobsApi } from '../src/jobs/client';
import { Jobs } from '../src/jobs/model';
import { JobCounts } from '../src/statusBar/jobCounts';
import { statusItemText } from '../src/statusBar/statusItem';
import { countsText, toastTypeOf } from '../src/ui/countsText';
import { job, TRANS } from './fixtures';

it('counts what runs and waits, once for many changes', async () => {
  const jobs = new Jobs({} as IJobsApi);
  jobs.update(job({ name: 'a', state: 'running' }));
  const counts = new JobCounts(jobs);
  expect(statusItemText(counts, TRANS)).toBe('1 running');
  let changes = 0;
  counts.changed.connect(() => (changes += 1));
  jobs.update(job({ name: 'b', state: 'starting' }));
  jobs.update(job({ name: 'c', state: 'queued' }));
  jobs.update(job({ name: 'd', state: 'succeeded' }));
  await Promise.resolve();
  expect(changes).toBe(1);
  expect(statusItemText(counts, TRANS)).toBe('2 running, 1 waiting');
  jobs.remove('a');
  jobs.remove('b');
  await Promise.resolve();
  expect(statusItemText(counts, TRANS)).toBe('1 waiting');
  jobs.remove('c');
  await Promise.resolve();
  expect([counts.running, counts.waiting]).toEqual([0, 0]);
});

it('counts what became of jobs', () => {
  const jobs = (['succeeded', 'failed', 'running', 'cancelled'] as const).map(
    state => job({ state })
  );
  expect(countsText(jobs, TRANS)).toBe(
    '1 submitted, 1 succeeded, 1 failed, 1 cancelled'
  );
  expect(toastTypeOf(jobs)).toBe('error');
  expect(toastTypeOf(jobs.slice(0, 1))).toBe('success');
  expect(toastTypeOf(jobs.slice(2))).toBe('info');
});
