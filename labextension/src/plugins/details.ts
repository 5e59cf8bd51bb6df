/** The details of a job, in the main area. Their code is loaded when the first ones are opened. */
import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { MainAreaWidget, WidgetTracker } from '@jupyterlab/apputils';
import { IEditorServices } from '@jupyterlab/codeeditor';
import {
  IRenderMimeRegistry,
  RenderMimeRegistry
} from '@jupyterlab/rendermime';
import {
  ITranslator,
  nullTranslator,
  type TranslationBundle
} from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';

import type { DetailsServices, JobDetails } from '../details/view';
import { CommandIDs, describeJobArguments, jobNameOf } from '../jobCommands';
import { Client } from '../jobs/client';
import { IJobs } from '../tokens';
import { showError } from '../ui/errors';
import { jobsIcon } from '../ui/icons';

type DetailsWidget = MainAreaWidget<JobDetails>;
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
    const createServices: CreateServices = notebook => {
      // Relative links in the notebook are resolved against the source's folder.
      const path = { path: notebook, contents: serviceManager.contents };
      const resolver = new RenderMimeRegistry.UrlResolver(path);
      const own = rendermime.clone({ resolver });
      const notebookServices = { rendermime: own, editorServices, translator };
      return { jobs, api, commands, trans, notebookServices };
    };
    const tracker = new WidgetTracker<DetailsWidget>({
      namespace: 'jupyter-to-job-details'
    });
    addCommand(commands, trans, name =>
      open(app, jobs, tracker, name, createServices)
    );
    void restorer?.restore(tracker, {
      command: CommandIDs.showDetails,
      args: ({ content }) => ({ name: content.jobName }),
      name: ({ content }) => content.jobName
    });
  }
};

export default plugin;

function addCommand(
  commands: CommandRegistry,
  trans: TranslationBundle,
  openDetails: (name: string) => Promise<DetailsWidget>
): void {
  commands.addCommand(CommandIDs.showDetails, {
    label: trans.__('Show Details'),
    caption: trans.__('See all that is known of the job'),
    icon: jobsIcon,
    describedBy: { args: describeJobArguments(trans) },
    isEnabled: args => jobNameOf(args) !== '',
    isVisible: args => jobNameOf(args) !== '',
    execute: async args => {
      try {
        return await openDetails(jobNameOf(args));
      } catch (error) {
        showError(error, trans, false);
        return null;
      }
    }
  });
}

/** Show the details of a job: the ones that are open, or new ones. */
async function open(
  { shell }: JupyterFrontEnd,
  jobs: IJobs,
  tracker: WidgetTracker<DetailsWidget>,
  name: string,
  createServices: CreateServices
): Promise<DetailsWidget> {
  const findOpen = () =>
    tracker.find(({ content }) => content.jobName === name);
  let widget = findOpen();
  if (widget === undefined) {
    const [{ notebook }, { JobDetails }] = await Promise.all([
      jobs.find(name),
      import('../details/view')
    ]);
    widget = findOpen(); // another call may have been faster
    if (widget === undefined) {
      const services = createServices(notebook);
      const content = new JobDetails(name, services);
      widget = new MainAreaWidget({ content });
      widget.id = `jupyter-to-job-details-${name}`;
      widget.title.label = services.trans.__('Details of %1', name);
      widget.title.icon = jobsIcon;
      widget.title.closable = true;
      widget.toolbar.hide();
      shell.add(widget, 'main', { type: 'Job Details' });
      await tracker.add(widget);
    }
  }
  shell.activateById(widget.id);
  return widget;
}
