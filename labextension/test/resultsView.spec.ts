/** Results side by side on the screen. */
import { CommandRegistry } from '@lumino/commands';
import { Widget } from '@lumino/widgets';

import type { Results } from '../src/api';
import type { IJobsApi, IResultsApi } from '../src/jobs/client';
import { Jobs } from '../src/jobs/model';
import { ResultsView } from '../src/results/view';
import { TRANS, until } from './fixtures';

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

async function show(answer: Results, answers: Partial<IResultsApi> = {}) {
  const jobs = new Jobs({
    list: () => Promise.resolve({ jobs: [], next: null })
  } as unknown as IJobsApi);
  const resultsApi = {
    getResults: () => Promise.resolve(answer),
    ...answers
  } as unknown as IResultsApi;
  const commands = new CommandRegistry();
  const services = { commands, jobs, resultsApi, trans: TRANS };
  const view = new ResultsView('night', services);
  Widget.attach(view, document.body);
  await until(() => view.node.querySelector('table, [role=alert]') !== null);
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

it('loads a picture again when it comes in sight once more', async () => {
  const appear: (() => void)[] = [];
  class Observer {
    constructor(onSeen: (entries: { isIntersecting: boolean }[]) => void) {
      this._look = () => onSeen([{ isIntersecting: true }]);
    }
    observe(): void {
      appear.push(this._look);
    }
    disconnect(): void {
      appear.splice(appear.indexOf(this._look), 1);
    }
    private readonly _look: () => void;
  }
  Object.assign(window, { IntersectionObserver: Observer });
  Object.assign(URL, {
    createObjectURL: () => 'blob:curve',
    revokeObjectURL: () => undefined
  });
  const { columns, rows } = results();
  const curve = { ...columns.at(-2)!, name: 'curve', pictures: true };
  const getPicture = jest
    .fn(() => Promise.resolve(new Blob()))
    .mockRejectedValueOnce(new Error('HTTP 504'));
  const view = await show(
    {
      columns: [...columns, curve],
      rows: [{ ...rows[0], curve: 'image/png' }]
    },
    { getPicture }
  );
  const shown = () => view.node.querySelector('.jp-ToJobResults-picture')!;
  await until(() => appear.length === 1);
  for (const text of ['Loading…', 'No picture', '']) {
    await until(() => shown().textContent === text);
    expect(shown().textContent).toBe(text);
    appear.forEach(look => look());
  }
  expect(shown().querySelector('img')!.src).toBe('blob:curve');
  expect(getPicture).toHaveBeenCalledTimes(2);
  expect(appear).toEqual([]);
  view.dispose();
});

it('keeps the keyboard focus when all runs are shown', async () => {
  const many = results();
  const rows = Array.from({ length: 201 }, (_, number) => ({
    ...many.rows[0]!,
    job: `run-${number}`
  }));
  const view = await show({ ...many, rows });
  const more = view.node.querySelector<HTMLElement>('.jp-ToJobResults-more')!;
  more.focus();
  more.click();
  await until(() => !more.isConnected);
  const matrix = view.node.querySelector('.jp-ToJobResults-scroller');
  expect(document.activeElement).toBe(matrix);
  view.dispose();
});

it('keeps the keyboard focus when the button that had it goes', async () => {
  const getResults = jest
    .fn(() => Promise.resolve(results()))
    .mockRejectedValueOnce(new Error('HTTP 504'));
  const view = await show(results(), { getResults });
  const find = (selector: string) =>
    view.node.querySelector<HTMLElement>(selector);
  const button = find('[role=alert] button')!;
  button.focus();
  button.click();
  await until(() => find('table') !== null && !button.isConnected);
  expect(document.activeElement).toBe(find('.jp-ToJobResults-scroller'));
  view.dispose();
});
