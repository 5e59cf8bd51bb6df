/** The details of a job on the screen. */
import { CommandRegistry } from '@lumino/commands';
import { Widget } from '@lumino/widgets';

import { JobDetails } from '../src/details/view';
import type { IDetailsApi, IJobsApi } from '../src/jobs/client';
import { Jobs } from '../src/jobs/model';
import type { NotebookServices } from '../src/ui/notebookServices';
import { job, overdueSoon, RECORD, TRANS, until } from './fixtures';

/** Show the details of a job of which the server answers this. */
async function show(answers: Partial<IDetailsApi>, shown = job()) {
  const jobs = new Jobs({} as IJobsApi);
  jobs.update(shown);
  const view = new JobDetails(shown.name, {
    jobs,
    api: {
      get: () => Promise.resolve(shown),
      getRecord: () => Promise.resolve(RECORD),
      getCells: () => Promise.resolve([]),
      ...answers
    } as IDetailsApi,
    commands: new CommandRegistry(),
    trans: TRANS,
    notebookServices: {} as NotebookServices
  });
  Widget.attach(view, document.body);
  await until(() => section(view, 'Environment') !== undefined);
  return view;
}

function section({ node }: JobDetails, title: string) {
  return [...node.querySelectorAll('section')].find(
    ({ firstChild }) => firstChild?.textContent === title
  );
}

it('has a screen reader say the state, and not each second of it', async () => {
  const started = new Date().toISOString();
  const view = await show({}, job({ state: 'running', started }));
  const state = view.node.querySelector('.jp-ToJob-details-state')!;
  expect(state.textContent).toMatch(/^Running · \d+ s$/);
  expect(view.node.querySelector('[role=status]')!.textContent).toBe('Running');
  view.dispose();
});

it('counts the seconds of a run wherever it says them', async () => {
  const started = new Date(Date.now() - 60_000).toISOString();
  const view = await show({}, job({ state: 'running', started }));
  const text = () => section(view, 'Progress')!.textContent;
  const before = text();
  expect(before).toMatch(/Running for1 min/);
  await until(() => text() !== before);
  expect(text()).toMatch(/Running for1 min \d s/);
  view.dispose();
});

it('says no longer when the job starts once that time is over', async () => {
  jest.useFakeTimers({ advanceTimers: true });
  const view = await show({}, job({ wait: overdueSoon() }));
  const says = () => view.node.textContent.includes('Starts at about');
  expect(says()).toBe(true);
  jest.advanceTimersByTime(40_000);
  await until(() => !says());
  expect(says()).toBe(false);
  view.dispose();
  jest.useRealTimers();
});

it.each([
  ['what was printed before a picture', 'epoch 1', 'epoch 1'],
  ['that the end has no text', '', 'The end has no text.']
])('shows in the log %s', async (_, printed, said) => {
  const readLogs = jest.fn((_: string, offset: number) =>
    Promise.resolve({
      text: offset < -100_000 ? printed : '',
      next: 5_000_000,
      end: true
    })
  );
  const view = await show({ readLogs });
  section(view, 'Log')!.querySelector('button')!.click();
  await until(() => readLogs.mock.calls.length === 2);
  await until(() => !section(view, 'Log')!.textContent.includes('Loading…'));
  const { textContent } = section(view, 'Log')!;
  expect(textContent).toContain(said);
  expect(textContent).toContain('Show Logs has more of it.');
  expect(textContent).not.toContain('Nothing was printed.');
  expect(readLogs).toHaveBeenCalledTimes(2);
  view.dispose();
});
