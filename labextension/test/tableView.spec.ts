/** The table of jobs on the screen. */
import type { Contents } from '@jupyterlab/services';
import { CommandRegistry } from '@lumino/commands';
import { Widget } from '@lumino/widgets';

import type { IJobsApi } from '../src/jobs/client';
import { Jobs } from '../src/jobs/model';
import { RegistryPreferences } from '../src/settings/preferences';
import { JobsTable } from '../src/table/table';
import { job, TRANS, until } from './fixtures';

class Observer {
  observe(): void {}
  disconnect(): void {}
}
Object.assign(window, { ResizeObserver: Observer });

async function show() {
  const jobs = new Jobs({
    list: () => Promise.resolve({ jobs: [job()], next: null })
  } as unknown as IJobsApi);
  await jobs.refresh();
  jobs.feed = 'live';
  const view = new JobsTable({
    jobs,
    preferences: new RegistryPreferences(),
    commands: new CommandRegistry(),
    contents: {} as Contents.IManager,
    trans: TRANS
  });
  Widget.attach(view, document.body);
  await until(() => view.node.querySelector('[data-name]') !== null);
  return { jobs, view };
}

it('keeps the keyboard focus when its last row goes', async () => {
  const { jobs, view } = await show();
  const find = (selector: string) =>
    view.node.querySelector<HTMLElement>(selector);
  find('[data-name]')!.focus();
  jobs.remove(job().name);
  await until(() => find('[data-name]') === null);
  expect(document.activeElement).toBe(find('input[type=search]'));
  view.dispose();
});

it('keeps the keyboard focus when the button that had it goes', async () => {
  const { jobs, view } = await show();
  const find = (selector: string) =>
    view.node.querySelector<HTMLElement>(selector);
  jobs.feed = 'forbidden';
  await until(() => find('[role=alert] button') !== null);
  find('[role=alert] button')!.focus();
  jobs.feed = 'live';
  await until(() => find('[role=alert] button') === null);
  expect(document.activeElement).toBe(find('[data-name]'));
  view.dispose();
});
