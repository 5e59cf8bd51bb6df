/** What a cluster says of devices and of jobs that wait, in words. */
import type { ClusterEvent } from '../src/api';
import { freeText } from '../src/dialog/flavorCards';
import type { IJobsApi } from '../src/jobs/client';
import { isWaitingOnCluster, type Job } from '../src/jobs/job';
import { Jobs } from '../src/jobs/model';
import { eventText } from '../src/ui/eventText';
import { CATALOG, job, TRANS } from './fixtures';

const EVENT: ClusterEvent = {
  time: '2026-01-02T03:04:05Z',
  reason: 'FailedScheduling',
  message: '0/2 nodes are available'
};

describe('devices', () => {
  it.each([
    [{ free: 1, total: 4 }, '1 of 4 free now'],
    [{ free: 0, total: 0 }, '0 of 0 free now'],
    [{ free: null, total: 4 }, '4 in all'],
    [{ free: null, total: null }, null],
    [{ free: 3, total: null }, null],
    [
      { free: 3, total: null, autoscaled: true },
      '3 free now, more are added when needed'
    ],
    [{ autoscaled: true }, 'More are added when needed'],
    [{ free: 1, total: 2, autoscaled: true }, '1 of 2 free now']
  ])('say of %j: %s', (changes, said) => {
    const device = { ...CATALOG.devices.t4!, ...changes };
    expect(freeText(device, TRANS)).toBe(said);
  });
});

describe('events', () => {
  it('are told in plain words where these are known', () => {
    expect(eventText('FailedScheduling', TRANS)).toBe(
      'No machine can take it now.'
    );
    expect(eventText('SomethingNew', TRANS)).toBe('SomethingNew');
  });

  it('are of jobs that wait on a cluster', () => {
    const isWaiting = (changes: Partial<Job>) =>
      isWaitingOnCluster(job({ backend: 'kubernetes', ...changes }));
    expect(isWaiting({ state: 'queued' })).toBe(true);
    expect(isWaiting({ state: 'starting' })).toBe(true);
    expect(isWaiting({ state: 'running' })).toBe(false);
    expect(isWaiting({ backend: 'local' })).toBe(false);
  });

  it('go to whoever asked, and not into the list', async () => {
    const listed = job({ backend: 'kubernetes' });
    const get = () => Promise.resolve({ ...listed, events: [EVENT] });
    const jobs = new Jobs({ get } as unknown as IJobsApi);
    jobs.update(listed);
    const changes: Job[] = [];
    jobs.changed.connect((_, changed) => changes.push(changed));
    expect(await jobs.getEvents(listed.name)).toEqual([EVENT]);
    expect(jobs.get(listed.name)!.events).toBeNull();
    expect(changes).toEqual([]);
  });
});
