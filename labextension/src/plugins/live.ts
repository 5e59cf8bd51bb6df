/** The live view and the logs of a job, in the main area. */
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

import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import { CommandIDs, describeJobArguments, jobNameOf } from '../jobCommands';
import { Client } from '../jobs/client';
import { isFinal, type Job } from '../jobs/job';
import type { JobView } from '../live/jobView';
import { createLogsView } from '../live/logsView';
import { createWatchView } from '../live/watchView';
import { IJobs } from '../tokens';
import { showError } from '../ui/errors';
import { jobsIcon } from '../ui/icons';

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
    const { contents } = serviceManager;
    addView(app, jobs, restorer, trans, {
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
      create: (name, notebook) => {
        // Relative links in the notebook are resolved against the source's folder.
        const resolver = new RenderMimeRegistry.UrlResolver({
          path: notebook,
          contents
        });
        const renderers = {
          rendermime: rendermime.clone({ resolver }),
          editorServices,
          translator
        };
        return createWatchView(name, services, renderers);
      }
    });
    addView(app, jobs, restorer, trans, {
      command: CommandIDs.logs,
      label: () => trans.__('Show Logs'),
      caption: () => trans.__('Read what it prints'),
      title: name => trans.__('Logs of %1', name),
      ariaLabel: name => trans.__('Logs of %1', name),
      create: name => createLogsView(name, services, rendermime)
    });
  }
};

export default plugin;

type ViewOptions = {
  command: string;
  /** The command's label and caption for a job, undefined for one that is not loaded. */
  label: (job?: Job) => string;
  caption: (job?: Job) => string;
  title: (name: string) => string;
  /** The view's accessible name. */
  ariaLabel: (name: string) => string;
  create: (name: string, notebook: string) => JobView;
};

/** Add a command that opens one view for each job in the main area, and restores it on reload. */
function addView(
  { commands, shell }: JupyterFrontEnd,
  jobs: IJobs,
  restorer: ILayoutRestorer | null,
  trans: TranslationBundle,
  options: ViewOptions
): void {
  const { command, label, caption } = options;
  const tracker = new WidgetTracker<MainAreaWidget<JobView>>({
    namespace: command.replace(':', '-')
  });
  const open = async (name: string) => {
    const { notebook } = await jobs.find(name);
    let widget = tracker.find(({ content }) => content.jobName === name);
    if (widget === undefined) {
      widget = createWidget(name, notebook, options);
      shell.add(widget, 'main', { type: label() });
      await tracker.add(widget);
    }
    shell.activateById(widget.id);
    return widget;
  };
  const findJob = (args: ReadonlyPartialJSONObject) =>
    jobs.get(jobNameOf(args));
  commands.addCommand(command, {
    label: args => label(findJob(args)),
    caption: args => caption(findJob(args)),
    describedBy: { args: describeJobArguments(trans) },
    isEnabled: args => jobNameOf(args) !== '',
    isVisible: args => jobNameOf(args) !== '',
    execute: async args => {
      try {
        return await open(jobNameOf(args));
      } catch (error) {
        showError(error, trans, false);
        return null;
      }
    }
  });
  void restorer?.restore(tracker, {
    command,
    args: ({ content }) => ({ name: content.jobName }),
    name: ({ content }) => content.jobName
  });
}

function createWidget(
  name: string,
  notebook: string,
  { command, title, ariaLabel, create }: ViewOptions
): MainAreaWidget<JobView> {
  const widget = new MainAreaWidget({ content: create(name, notebook) });
  widget.content.node.setAttribute('aria-label', ariaLabel(name));
  widget.id = `${command.replace(':', '-')}-${name}`;
  widget.title.label = title(name);
  widget.title.icon = jobsIcon;
  widget.title.closable = true;
  widget.toolbar.hide();
  return widget;
}
