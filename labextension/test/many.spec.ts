/** 10,000 jobs: what a change costs. */
import type { IJobsApi } from '../src/jobs/client';
import type { Job } from '../src/jobs/job';
import { Jobs } from '../src/jobs/model';
import { PanelModel } from '../src/panel/model';
import { TableModel } from '../src/table/model';
import { job, TRANS } from './fixtures';

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

  it('cost little to sort, search and select in the table', () => {
    const table = new TableModel(jobs, TRANS);
    table.isVisible = true;
    for (let index = 0; index < COUNT; index += 1) {
      told(index, {
        notebook: `study-${index % 40}.ipynb`,
        parameters: { rate: index % 7, seed: index },
        state: index % 3 === 0 ? 'failed' : 'succeeded'
      });
    }
    const columns = [...table.allColumns.map(({ id }) => id), 'parameter.rate'];
    for (const column of columns) {
      const sort = { column, isDescending: true };
      table.set({ sort });
      expect({
        column,
        isSlow: cost(1, () => table.set({ sort })) > 200
      }).toEqual({ column, isSlow: false });
    }
    table.set({ sort: null });
    const search = () => {
      table.set({ query: 'study-7.ipynb rate=3' });
      expect(table.rows.length).toBeGreaterThan(10);
      table.set({ query: '' });
    };
    expect(cost(5, search)).toBeLessThan(100);
    const select = () => table.select(each => each.selectAll(table.names));
    expect(cost(5, select)).toBeLessThan(50);
    expect(table.selectedJobs).toHaveLength(COUNT);
    table.dispose();
  });
});
