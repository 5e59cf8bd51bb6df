/** The details of a job, in the main area. Their code is loaded when the first ones are opened. */
import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IEditorServices } from '@jupyterlab/codeeditor';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { addJobView } from '../addJobView';
import type { DetailsServices } from '../details/view';
import { Client } from '../jobs/client';
import { IJobs } from '../tokens';
import { resolveLinks } from '../ui/notebookServices';
import { ViewCommandIDs } from '../viewCommands';

type CreateServices = (notebook: string) => DetailsServices;

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-to-job:details',
  description: 'Shows all about one job.',
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
    const api = new Client(serviceManager.serverSettings);
    const unresolved = { rendermime, editorServices, translator };
    const createServices: CreateServices = path => {
      const { contents } = serviceManager;
      const notebookServices = resolveLinks(unresolved, contents, path);
      return { jobs, api, commands, trans, notebookServices };
    };
    addJobView(app, jobs, restorer, trans, {
      command: ViewCommandIDs.details,
      label: () => trans.__('Show Details'),
      caption: () => trans.__('See all that is known of the job'),
      title: name => trans.__('%1: details', name), // a narrow tab shows the name
      ariaLabel: name => trans.__('Details of %1', name),
      create: async (name, notebook) => {
        const { JobDetails } = await import('../details/view');
        return new JobDetails(name, createServices(notebook));
      }
    });
  }
};

export default plugin;
