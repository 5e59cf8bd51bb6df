/** The line above an open result. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { NotebookModel, type NotebookPanel } from '@jupyterlab/notebook';
import { CommandRegistry } from '@lumino/commands';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';

import type { IJobsApi } from '../src/jobs/client';
import { Jobs } from '../src/jobs/model';
import plugin from '../src/plugins/resultNotebooks';
import { TRANS, until } from './fixtures';

/** An open result of a job, whose only cell failed. */
function openResult(bars: Widget[]) {
  const model = new NotebookModel();
  const papermill = { status: 'failed' };
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

it('leads to the source also after the result was renamed', async () => {
  const bars: Widget[] = [];
  const panel = openResult(bars);
  const tracker = {
    currentWidget: panel,
    widgetAdded: new Signal({}),
    currentChanged: new Signal({}),
    forEach: (adopt: (panel: NotebookPanel) => void) =>
      adopt(panel as unknown as NotebookPanel)
  };
  const commands = new CommandRegistry();
  const opened: unknown[] = [];
  commands.addCommand('docmanager:open', {
    execute: ({ path }) => void opened.push(path)
  });
  const read: string[] = [];
  const contents = {
    localPath: (path: string) => path,
    get: (path: string) => {
      read.push(path);
      return Promise.resolve({ content: panel.content.model.toJSON() });
    }
  };
  const jobs = new Jobs({
    get: () => Promise.reject(new Error('It was deleted.'))
  } as unknown as IJobsApi);
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

  panel.context.path = 'kept.ipynb';
  source!.click();
  await until(() => opened.length === 1);
  expect(opened).toEqual(['study.ipynb']);
  back!.click();
  await until(() => opened.length === 2);
  expect(opened).toEqual(['study.ipynb', 'study.ipynb']);
  expect(read).toEqual(['kept.ipynb', 'kept.ipynb']);
  bar!.dispose();
});
