/** How many jobs have not ended, on the tab of the panel. */
import { CommandRegistry } from '@lumino/commands';

import type { IJobsApi } from '../src/jobs/client';
import { Jobs } from '../src/jobs/model';
import { PanelModel } from '../src/panel/model';
import { JobsPanel } from '../src/panel/panel';
import { job, TRANS } from './fixtures';

test('it outlives a side bar that puts a dataset in its place', () => {
  const jobs = new Jobs({} as IJobsApi);
  jobs.update(job());
  const model = new PanelModel(jobs);
  const { title } = new JobsPanel(model, new CommandRegistry(), TRANS);
  expect(title.dataset.unfinished).toBe('1');
  title.dataset = { id: 'jupyter-to-job-jobs' }; // as JupyterLab 4.4 does
  expect(title.dataset).toEqual({ id: 'jupyter-to-job-jobs', unfinished: '1' });
  jobs.update(job({ name: 'study-bbbbbbbb' }));
  expect(title.dataset.unfinished).toBe('2');
});
