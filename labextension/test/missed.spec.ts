/** What ended while no page was open is told of the server that is there now. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { PageConfig } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { CommandRegistry } from '@lumino/commands';

import type { IJobsApi } from '../src/jobs/client';
import type { Job } from '../src/jobs/job';
import { Jobs } from '../src/jobs/model';
import plugin from '../src/plugins/missed';
import { job, TRANS, until } from './fixtures';

const tell = jest.spyOn(Notification, 'emit').mockReturnValue('');

/** Open the page of a server whose files are there, and read what it keeps of these jobs. */
async function visit(workspace: string, ...known: Job[]): Promise<string[]> {
  tell.mockClear();
  PageConfig.setOption('jupyterToJobWorkspace', workspace);
  const page = { jobs: known, next: null };
  const jobs = new Jobs({
    list: () => Promise.resolve(page)
  } as unknown as IJobsApi);
  await jobs.refresh();
  const save = jest.spyOn(Storage.prototype, 'setItem');
  const app = {
    commands: new CommandRegistry(),
    restored: Promise.resolve(),
    serviceManager: {
      contents: {},
      serverSettings: ServerConnection.makeSettings({
        baseUrl: 'http://localhost:8888/',
        fetch: () => Promise.resolve(new Response(JSON.stringify(page)))
      })
    }
  } as unknown as JupyterFrontEnd;
  void plugin.activate(app, jobs, null, { load: () => TRANS });
  await until(() => save.mock.calls.length > 0);
  save.mockRestore();
  return tell.mock.calls.map(([text]) => text);
}

it('is not told of a server that has the port of another one', async () => {
  Object.defineProperty(document, 'visibilityState', { value: 'visible' });
  const ended = (name: string, submitted: string) =>
    job({
      name,
      submitted,
      state: 'succeeded',
      delivery: { state: 'delivered', path: `${name}.ipynb`, message: null }
    });
  const [first, second] = [ended('first', '1'), ended('second', '2')];
  const [other, third] = [ended('other', '3'), ended('third', '4')];
  expect(await visit('/home/ada/one', first)).toEqual([]);
  expect(await visit('/home/ada/two', other)).toEqual([]);
  expect(await visit('/home/ada/one', second, first)).toEqual([
    expect.stringContaining('While you were away: second')
  ]);
  expect(await visit('/home/ada/two', third, other)).toEqual([
    expect.stringContaining('While you were away: third')
  ]);
});
