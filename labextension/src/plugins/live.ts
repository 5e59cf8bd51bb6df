/** Watch live and logs: what a job writes while it runs, in the main area. */
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
import type { Widget } from '@lumino/widgets';

import { describeJob, JOB, nameOf } from '../jobCommands';
import { Client } from '../jobs/client';
import { LogsView } from '../live/logsView';
import { WatchView } from '../live/watchView';
import { IJobs } from '../tokens';
import { tellRefusal } from '../ui/errors';
import { jobsIcon } from '../ui/icons';

type View = Widget & { readonly job: string };

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
    languages: ITranslator | null
  ): void => {
    const translator = languages ?? nullTranslator;
    const trans = translator.load('jupyter_to_job');
    const { commands, serviceManager } = app;
    const reader = new Client(serviceManager.serverSettings);
    const means = { jobs, commands, reader, trans };
    const { contents } = serviceManager;
    addView(app, jobs, restorer, trans, {
      command: JOB.watch,
      label: trans.__('Watch Live'),
      caption: trans.__('See the notebook fill in as it runs'),
      title: name => name,
      spoken: name => trans.__('%1, as it runs', name),
      make: (name, notebook) => {
        // What its text refers to lies beside the source.
        const resolver = new RenderMimeRegistry.UrlResolver({
          path: notebook,
          contents
        });
        const renderers = {
          rendermime: rendermime.clone({ resolver }),
          editorServices,
          translator
        };
        return new WatchView(name, means, renderers);
      }
    });
    addView(app, jobs, restorer, trans, {
      command: JOB.logs,
      label: trans.__('Show Logs'),
      caption: trans.__('Read what it prints'),
      title: name => trans.__('Logs of %1', name),
      spoken: name => trans.__('Logs of %1', name),
      make: name => new LogsView(name, means, rendermime)
    });
  }
};

export default plugin;

type Kind = {
  command: string;
  label: string;
  caption: string;
  title: (name: string) => string;
  /** What a screen reader calls it. */
  spoken: (name: string) => string;
  make: (name: string, notebook: string) => View;
};

/** Add a command that opens one view a job in the main area, and have it restored. */
function addView(
  { commands, shell }: JupyterFrontEnd,
  jobs: IJobs,
  restorer: ILayoutRestorer | null,
  trans: TranslationBundle,
  { command, label, caption, title, spoken, make }: Kind
): void {
  const tracker = new WidgetTracker<MainAreaWidget<View>>({
    namespace: command.replace(':', '-')
  });
  const open = async (name: string) => {
    const { notebook } = await jobs.find(name);
    const known = tracker.find(({ content }) => content.job === name);
    if (known !== undefined) {
      shell.activateById(known.id);
      return known;
    }
    const widget = new MainAreaWidget({ content: make(name, notebook) });
    widget.content.node.setAttribute('aria-label', spoken(name));
    widget.id = `${command.replace(':', '-')}-${name}`;
    widget.title.label = title(name);
    widget.title.icon = jobsIcon;
    widget.title.closable = true;
    widget.toolbar.hide();
    shell.add(widget, 'main', { type: label });
    await tracker.add(widget);
    shell.activateById(widget.id);
    return widget;
  };
  commands.addCommand(command, {
    label,
    caption,
    describedBy: { args: describeJob(trans) },
    isEnabled: args => nameOf(args) !== '',
    isVisible: args => nameOf(args) !== '',
    execute: async args => {
      try {
        return await open(nameOf(args));
      } catch (error) {
        tellRefusal(error, trans, false);
        return null;
      }
    }
  });
  void restorer?.restore(tracker, {
    command,
    args: ({ content }) => ({ name: content.job }),
    name: ({ content }) => content.job
  });
}
