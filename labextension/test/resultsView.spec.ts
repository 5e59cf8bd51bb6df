/** Results side by side on the screen. */
import { CommandRegistry } from '@lumino/commands';
import { Widget } from '@lumino/widgets';

import type { Results } from '../src/api';
import type { IJobsApi, IResultsApi } from '../src/jobs/client';
import { Jobs } from '../src/jobs/model';
import { ResultsView } from '../src/results/view';
import { TRANS } from './fixtures';

const settle = () => new Promise(resolve => setTimeout(resolve, 20));

/** Two runs, which differ in these columns and in their losses. */
function results(...differing: string[]): Results {
  const columns = ['job', 'notebook', 'flavor', 'device', 'loss', 'seconds'];
  const kinds: Record<string, 'metric' | 'usage'> = {
    loss: 'metric',
    seconds: 'usage'
  };
  return {
    columns: columns.map(name => ({
      name,
      kind: kinds[name] ?? 'job',
      differs: ['job', 'loss', ...differing].includes(name),
      field: name,
      pictures: false
    })),
    rows: [1, 2].map(number => ({
      job: `run-${number}`,
      notebook: 'a.ipynb',
      flavor: 'small',
      device: 'cpu',
      ...Object.fromEntries(differing.map(name => [name, `${name} ${number}`])),
      loss: number / 2,
      seconds: 5
    }))
  };
}

async function show(answer: Results) {
  const jobs = new Jobs({
    list: () => Promise.resolve({ jobs: [], next: null })
  } as unknown as IJobsApi);
  const resultsApi = {
    getResults: () => Promise.resolve(answer)
  } as unknown as IResultsApi;
  const commands = new CommandRegistry();
  const services = { commands, jobs, resultsApi, trans: TRANS };
  const view = new ResultsView('night', services);
  Widget.attach(view, document.body);
  await settle();
  return view;
}

it.each([
  [['flavor'], 'Flavor'],
  [['notebook', 'device'], 'Device'],
  [['notebook'], 'Notebook'],
  [[], 'Job']
])('plots runs that differ in %j over what it says', async (names, title) => {
  const view = await show(results(...names));
  const [, over] = view.node.querySelectorAll('figcaption label');
  expect(over!.querySelector('option:checked')!.textContent).toBe(title);
  const chart = view.node.querySelector('.jp-ToJobResults-chart')!;
  expect(chart.getAttribute('aria-label')).toContain(`loss over ${title}: 2`);
  view.dispose();
});
