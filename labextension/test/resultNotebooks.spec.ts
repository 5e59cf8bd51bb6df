/** The line above an open result, and the way back from the source. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { NotebookModel, type NotebookPanel } from '@jupyterlab/notebook';
import { CommandRegistry } from '@lumino/commands';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';

import { CommandIDs } from '../src/jobCommands';
import { ApiError, type IJobsApi } from '../src/jobs/client';
import type { Job } from '../src/jobs/job';
import { Jobs } from '../src/jobs/model';
import plugin from '../src/plugins/resultNotebooks';
import { job, TRANS, until } from './fixtures';
import { DELIVERED, NOT_FOUND } from './jobsServer';

/** An open result of a job, with the status of its only cell. */
function openResult(bars: Widget[], status: string) {
  const model = new NotebookModel();
  const papermill = { status };
  model.fromJSON({
    nbformat: 4,
    nbformat_minor: 5,
    metadata: {
      jupyter_to_job: {
        provenance: { job: 'study-1', notebook: 'study.ipynb' }
      }
    },
    cells: [
      {
        cell_type: 'code',
        source: '1 / 0',
        metadata: { papermill },
        outputs: [],
        execution_count: 1
      }
    ]
  });
  const widgets = [{ model: model.cells.get(0) }];
  return {
    isDisposed: false,
    context: {
      ready: Promise.resolve(),
      path: 'study-1.ipynb',
      sessionContext: { kernelPreference: {} }
    },
    content: { model, widgets, activeCellIndex: 0 },
    contentHeader: { insertWidget: (_: number, bar: Widget) => bars.push(bar) }
  };
}

/** The line above the open result, whose job the server answers to `get`. */
async function openBar(
  get: () => Promise<Job>,
  open: (path: unknown) => unknown,
  status = 'failed'
) {
  const bars: Widget[] = [];
  const panel = openResult(bars, status);
  const tracker = {
    currentWidget: panel,
    widgetAdded: new Signal({}),
    currentChanged: new Signal({}),
    forEach: (adopt: (panel: NotebookPanel) => void) =>
      adopt(panel as unknown as NotebookPanel)
  };
  const commands = new CommandRegistry();
  commands.addCommand('docmanager:open', { execute: ({ path }) => open(path) });
  const read: string[] = [];
  const contents = {
    localPath: (path: string) => path,
    get: (path: string) => {
      read.push(path);
      return Promise.resolve({ content: panel.content.model.toJSON() });
    }
  };
  const jobs = new Jobs({ get } as unknown as IJobsApi);
  void plugin.activate(
    { commands, serviceManager: { contents } } as unknown as JupyterFrontEnd,
    jobs,
    tracker,
    { load: () => TRANS },
    null
  );
  await until(() => bars.length === 1);
  const [bar] = bars;
  Widget.attach(bar!, document.body);
  await until(() => bar!.node.querySelector('button') !== null);
  const [source, back] = bar!.node.querySelectorAll('button');
  return { bar: bar!, panel, commands, read, source: source!, back: back! };
}

it('leads to the source also after the result was renamed', async () => {
  const opened: unknown[] = [];
  const { bar, panel, read, source, back } = await openBar(
    () => Promise.reject(NOT_FOUND),
    path => void opened.push(path)
  );
  panel.context.path = 'kept.ipynb';
  source.click();
  await until(() => opened.length === 1);
  expect(opened).toEqual(['study.ipynb']);
  back.click();
  await until(() => opened.length === 2);
  expect(opened).toEqual(['study.ipynb', 'study.ipynb']);
  expect(read).toEqual(['kept.ipynb', 'kept.ipynb']);
  bar.dispose();
});

it('leads to the source where this server has it', async () => {
  const opened: unknown[] = [];
  const notebook = 'work/study.ipynb';
  const { bar, commands, source, back } = await openBar(
    () => Promise.resolve(job({ name: 'study-1', notebook })),
    path => void opened.push(path)
  );
  source.click();
  await until(() => opened.length === 1);
  back.click();
  await until(() => opened.length === 2);
  await commands.execute(CommandIDs.sourceCell, {});
  expect(opened).toEqual([notebook, notebook, notebook]);
  bar.dispose();
});

it('does not lead to the notebook of another job of that name', async () => {
  const opened: unknown[] = [];
  const { bar, source } = await openBar(
    () => Promise.resolve(job({ name: 'study-1', notebook: 'other.ipynb' })),
    path => void opened.push(path)
  );
  source.click();
  await until(() => opened.length === 1);
  expect(opened).toEqual(['study.ipynb']);
  bar.dispose();
});

it('says that the source cannot be opened, and what to do', async () => {
  const emit = jest.spyOn(Notification, 'emit').mockReturnValue('');
  const log = jest.spyOn(console, 'error').mockImplementation();
  const { bar, source, back } = await openBar(
    () => Promise.reject(NOT_FOUND),
    () => Promise.reject(new Error('404 Not Found'))
  );
  source.click();
  await until(() => emit.mock.calls.length === 1);
  back.click();
  await until(() => emit.mock.calls.length === 2);
  const text = expect.stringContaining(
    'study.ipynb cannot be opened (404 Not Found). If it was moved'
  ) as string;
  expect(emit.mock.calls.map(([told]) => told)).toEqual([text, text]);
  emit.mockRestore();
  log.mockRestore();
  bar.dispose();
});

it.each(['failed', 'completed'])(
  'says why the job of a %s run cannot be read, and opens nothing',
  async status => {
    const emit = jest.spyOn(Notification, 'emit').mockReturnValue('');
    const opened: unknown[] = [];
    const { bar, source, back } = await openBar(
      () => Promise.reject(new ApiError('refused', 'Away.', '', 'unavailable')),
      path => void opened.push(path),
      status
    );
    source.click();
    await until(() => emit.mock.calls.length === 1);
    back.click();
    await until(() => emit.mock.calls.length === 2);
    expect(emit.mock.calls.map(([told]) => told)).toEqual(['Away.', 'Away.']);
    expect(opened).toEqual([]);
    emit.mockRestore();
    bar.dispose();
  }
);

describe('Bring Outputs Back in the source', () => {
  const delivery = { ...DELIVERED.delivery, path: 'study-1.ipynb' };
  const earlier = { ...DELIVERED, name: 'study-1', submitted: '1', delivery };
  const waiting = job({ name: 'study-2', submitted: '2' });

  /** Run it in the notebook; returns the results that were read. */
  async function bringBack(jobs: Jobs): Promise<string[]> {
    const commands = new CommandRegistry();
    const read: string[] = [];
    const contents = {
      localPath: (path: string) => path,
      get: (path: string) => {
        read.push(path);
        return Promise.reject(new Error('It was removed.'));
      }
    };
    const source = {
      context: { path: 'study.ipynb' },
      content: { model: new NotebookModel() }
    };
    void plugin.activate(
      { commands, serviceManager: { contents } } as unknown as JupyterFrontEnd,
      jobs,
      {
        currentWidget: source,
        widgetAdded: new Signal({}),
        currentChanged: new Signal({}),
        forEach: () => undefined
      },
      { load: () => TRANS },
      null
    );
    await commands.execute('jupyter-to-job:bring-back');
    return read;
  }

  const told: string[] = [];
  beforeEach(() => {
    told.length = 0;
    jest.spyOn(console, 'error').mockImplementation();
    jest
      .spyOn(Notification, 'emit')
      .mockImplementation(message => String(told.push(message)));
  });
  afterEach(() => jest.restoreAllMocks());

  it('takes the newest result while a newer job waits', async () => {
    const jobs = new Jobs({} as IJobsApi);
    jobs.update(earlier);
    jobs.update(waiting);
    expect(await bringBack(jobs)).toEqual(['study-1.ipynb']);
  });

  it('finds a result that the page has not loaded', async () => {
    const list = jest.fn(() =>
      Promise.resolve({ jobs: [earlier], next: null })
    );
    const jobs = new Jobs({ list } as unknown as IJobsApi);
    jobs.update(waiting);
    expect(await bringBack(jobs)).toEqual(['study-1.ipynb']);
    const state = 'succeeded,failed,cancelled';
    const query = { limit: 50, notebook: 'study.ipynb', state };
    expect(list.mock.calls).toEqual([[query]]);
  });

  it.each([
    ['study-2 has not delivered its result yet.', [waiting]],
    ['There is no result of this notebook.', []]
  ])('says otherwise: %s', async (text, listed) => {
    const list = () => Promise.resolve({ jobs: listed, next: null });
    const jobs = new Jobs({ list } as unknown as IJobsApi);
    expect(await bringBack(jobs)).toEqual([]);
    expect(told).toEqual([expect.stringContaining(text)]);
  });
});
