/** Views of jobs that JupyterLab opens again when its page is loaded. */
import { type JupyterFrontEnd, LayoutRestorer } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { StateDB } from '@jupyterlab/statedb';
import { CommandRegistry } from '@lumino/commands';
import { PromiseDelegate } from '@lumino/coreutils';
import { Widget } from '@lumino/widgets';

import { addJobView, type JobViewOptions } from '../src/addJobView';
import { ApiError } from '../src/jobs/client';
import type { IJobs } from '../src/tokens';
import { TRANS, until } from './fixtures';

const COMMAND = 'jupyter-to-job:show-details';

it('are forgotten with their job, of which nobody has asked', async () => {
  const tell = jest.spyOn(Notification, 'emit').mockReturnValue('');
  const commands = new CommandRegistry();
  const connector = new StateDB();
  for (const name of ['deleted', 'refused']) {
    await connector.save(`jupyter-to-job-show-details:${name}`, {
      data: { name }
    });
  }
  const first = new PromiseDelegate<void>();
  const restorer = new LayoutRestorer({
    connector,
    first: first.promise,
    registry: commands
  });
  const find = (name: string) =>
    Promise.reject(
      name === 'deleted'
        ? new ApiError('refused', 'No such job', null, 'not_found')
        : new ApiError('refused', 'Not now', null, 'unavailable')
    );
  const jobs = { get: () => undefined, find } as unknown as IJobs;
  addJobView({ commands } as JupyterFrontEnd, jobs, restorer, TRANS, {
    command: COMMAND,
    label: () => '',
    caption: () => ''
  } as unknown as JobViewOptions);
  first.resolve();
  await restorer.restored;

  const told = () => tell.mock.calls.map(([text]) => text);
  const { ids } = await connector.list('jupyter-to-job-show-details');
  expect(ids).toEqual(['jupyter-to-job-show-details:refused']);
  expect(told()).toEqual(['Not now']);
  expect(await commands.execute(COMMAND, { name: 'deleted' })).toBeNull();
  expect(told()).toEqual(['Not now', 'No such job']);
  tell.mockRestore();
});

it('are there before the server has answered, and go with a deleted job', async () => {
  const commands = new CommandRegistry();
  const connector = new StateDB();
  for (const name of ['slow', 'deleted']) {
    await connector.save(`jupyter-to-job-show-details:${name}`, {
      data: { name, notebook: `${name}.ipynb` }
    });
  }
  const first = new PromiseDelegate<void>();
  const restorer = new LayoutRestorer({
    connector,
    first: first.promise,
    registry: commands
  });
  const answer = new PromiseDelegate<never>();
  const find = (name: string) =>
    name === 'slow' ? new Promise(() => undefined) : answer.promise;
  const jobs = { get: () => undefined, find } as unknown as IJobs;
  const shown: Widget[] = [];
  const shell = {
    widgets: () => [],
    activateById: () => undefined,
    add: (widget: Widget) => {
      shown.push(widget);
      Widget.attach(widget, document.body);
    }
  };
  const app = { commands, shell } as unknown as JupyterFrontEnd;
  const created: string[][] = [];
  addJobView(app, jobs, restorer, TRANS, {
    command: COMMAND,
    label: () => '',
    caption: () => '',
    title: name => name,
    ariaLabel: name => name,
    create: (name, notebook) => {
      created.push([name, notebook]);
      return Promise.resolve(Object.assign(new Widget(), { jobName: name }));
    }
  });
  first.resolve();
  await restorer.restored;

  expect(created.sort()).toEqual([
    ['deleted', 'deleted.ipynb'],
    ['slow', 'slow.ipynb']
  ]);
  expect(shown).toHaveLength(2);
  const kept = await connector.fetch('jupyter-to-job-show-details:slow');
  expect(kept).toMatchObject({
    data: { name: 'slow', notebook: 'slow.ipynb' }
  });

  answer.reject(new ApiError('refused', 'No such job', null, 'not_found'));
  await until(() => shown.filter(({ isDisposed }) => isDisposed).length === 1);
  expect(shown.filter(({ isDisposed }) => !isDisposed)).toHaveLength(1);
  const { ids } = await connector.list('jupyter-to-job-show-details');
  expect(ids).toEqual(['jupyter-to-job-show-details:slow']);
});
