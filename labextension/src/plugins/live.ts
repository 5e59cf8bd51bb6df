/** The live view and the logs of a job, in the main area. */
import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IEditorServices } from '@jupyterlab/codeeditor';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { addJobView, type JobViewOptions } from '../addJobView';
import { CommandIDs } from '../jobCommands';
import { Client } from '../jobs/client';
import { isFinal } from '../jobs/job';
import type { ViewServices } from '../live/jobView';
import { IJobs } from '../tokens';
import { type NotebookServices, resolveLinks } from '../ui/notebookServices';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-to-job:live',
  description: 'Shows what a job writes while it runs.',
  autoStart: true,
  requires: [IJobs, IRenderMimeRegistry, IEditorServices],
  optional: [ILayoutRestorer, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    jobs: IJobs,
    rendermime: IRenderMimeRegistry,
    editorServices: IEditorServices,
    restorer: ILayoutRestorer | null,
    optionalTranslator: ITranslator | null
  ): void => {
    const translator = optionalTranslator ?? nullTranslator;
    const trans = translator.load('jupyter_to_job');
    const { commands, serviceManager } = app;
    const journalApi = new Client(serviceManager.serverSettings);
    const services = { jobs, commands, journalApi, trans };
    const notebookServices = { rendermime, editorServices, translator };
    const renderers = (path: string) =>
      resolveLinks(notebookServices, serviceManager.contents, path);
    const add = (options: JobViewOptions) =>
      addJobView(app, jobs, restorer, trans, options);
    notebookViews(services, renderers).forEach(add);
    add({
      command: CommandIDs.logs,
      label: () => trans.__('Show Logs'),
      caption: () => trans.__('Read what it prints'),
      title: name => trans.__('Logs of %1', name),
      ariaLabel: name => trans.__('Logs of %1', name),
      create: async name => {
        const { createLogsView } = await import('../live/logsView');
        return createLogsView(name, services, rendermime);
      }
    });
  }
};

export default plugin;

/** The live view, and the view of a result without its outputs. */
function notebookViews(
  services: ViewServices,
  renderers: (path: string) => NotebookServices
): JobViewOptions[] {
  const { trans } = services;
  return [
    {
      command: CommandIDs.watch,
      label: job =>
        job !== undefined && isFinal(job)
          ? trans.__('Show What Ran')
          : trans.__('Watch Live'),
      caption: job =>
        job !== undefined && isFinal(job)
          ? trans.__('See the notebook as it ran')
          : trans.__('See the notebook fill in as it runs'),
      title: name => name,
      ariaLabel: name => trans.__('%1, as it runs', name),
      create: async (name, notebook) => {
        const { createWatchView } = await import('../live/watchView');
        return createWatchView(name, services, renderers(notebook));
      }
    },
    {
      command: CommandIDs.openWithoutOutputs,
      label: () => trans.__('Open Without Outputs'),
      caption: () => trans.__('See the code and text of a large result'),
      title: name => name,
      ariaLabel: name => trans.__('%1, without its outputs', name),
      create: async (name, notebook) => {
        const { createCodeView } = await import('../live/codeView');
        return createCodeView(name, services, renderers(notebook));
      }
    }
  ];
}
