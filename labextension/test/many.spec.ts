/** 10,000 jobs: what a change costs. */
import type { IJobsApi } from '../src/jobs/client';
import type { Job } from '../src/jobs/job';
import { Jobs } from '../src/jobs/model';
import { PanelModel } from '../src/panel/model';
import { job } from './fixtures';

const COUNT = 10_000;

function name(index: number): string {
  return `j-${String(index).padStart(6, '0')}`;
}

describe('10,000 jobs', () => {
  const jobs = new Jobs({} as IJobsApi);
  const model = new PanelModel(jobs);
  const told = (index: number, changes: Partial<Job> = {}) =>
    jobs.update(job({ name: name(index), submitted: name(index), ...changes }));

  /** Milliseconds for each of so many. */
  const cost = (times: number, work: (index: number) => void): number => {
    const began = performance.now();
    for (let index = 0; index < times; index += 1) {
      work(index);
    }
    return (performance.now() - began) / times;
  };

  it('cost little to hear of, and to show', () => {
    expect(cost(COUNT, index => told((index * 7919) % COUNT))).toBeLessThan(
      0.5
    );
    expect(jobs.all.map(each => each.name)).toEqual(
      Array.from({ length: COUNT }, (_, index) => name(COUNT - 1 - index))
    );
    const change = cost(200, index => {
      told(index * 50, { state: 'running', journal: index });
      expect(model.rows).toHaveLength(COUNT);
    });
    expect(change).toBeLessThan(8); // half of what a smooth page has for a picture
    model.set({ query: name(77) });
    expect(cost(5, () => model.rows)).toBeLessThan(50);
    expect(model.rows).toHaveLength(1);
  });
});
