/** Commands that open a view of a job in the main area. The views themselves are loaded then. */
import type { ILayoutRestorer, JupyterFrontEnd } from '@jupyterlab/application';
import { MainAreaWidget, WidgetTracker } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import type { Widget } from '@lumino/widgets';

import { describeJobArguments, jobNameOf } from './jobCommands';
import { isNotFound } from './jobs/client';
import type { Job } from './jobs/job';
import type { IJobs } from './tokens';
import { showError } from './ui/errors';
import { jobsIcon } from './ui/icons';
import { activate, addToMainArea } from './ui/place';

export type JobViewOptions = {
  command: string;
  /** The command's label and caption for a job, undefined for one that is not loaded. */
  label: (job?: Job) => string;
  caption: (job?: Job) => string;
  title: (name: string) => string;
  /** The view's accessible name. */
  ariaLabel: (name: string) => string;
  create: (name: string, notebook: string) => Promise<JobWidget>;
};

/** What shows a job. */
type JobWidget = Widget & { readonly jobName: string };

type Tracker = WidgetTracker<MainAreaWidget<JobWidget>>;

/** Add a command that opens one view for each job in the main area, and restores it on reload. */
export function addJobView(
  { commands, shell }: JupyterFrontEnd,
  jobs: IJobs,
  restorer: ILayoutRestorer | null,
  trans: TranslationBundle,
  options: JobViewOptions
): void {
  const { command, label, caption } = options;
  const tracker: Tracker = new WidgetTracker({
    namespace: command.replace(':', '-')
  });
  let isRestoring = restorer !== null;
  const open = async (name: string) => {
    const { notebook } = await jobs.find(name);
    const widget = await findOrCreate(tracker, name, options, notebook);
    if (!widget.isAttached) {
      addToMainArea(shell, widget, label());
    }
    activate(shell, widget);
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
        if (isRestoring && isNotFound(error)) {
          throw error; // Nobody asked for it, and JupyterLab forgets the view then.
        }
        showError(error, trans, false);
        return null;
      }
    }
  });
  void restorer
    ?.restore(tracker, {
      command,
      args: ({ content }) => ({ name: content.jobName }),
      name: ({ content }) => content.jobName
    })
    .finally(() => (isRestoring = false));
}

async function findOrCreate(
  tracker: Tracker,
  name: string,
  options: JobViewOptions,
  notebook: string
): Promise<MainAreaWidget<JobWidget>> {
  const find = () => tracker.find(({ content }) => content.jobName === name);
  const existing = find();
  if (existing !== undefined) {
    return existing;
  }
  const content = await options.create(name, notebook);
  const earlier = find();
  if (earlier !== undefined) {
    content.dispose(); // a second call was faster
    return earlier;
  }
  const widget = createWidget(name, content, options);
  await tracker.add(widget);
  return widget;
}

function createWidget(
  name: string,
  content: JobWidget,
  { command, title, ariaLabel }: JobViewOptions
): MainAreaWidget<JobWidget> {
  const widget = new MainAreaWidget({ content });
  content.node.setAttribute('aria-label', ariaLabel(name));
  widget.id = `${command.replace(':', '-')}-${name}`;
  widget.title.label = title(name);
  widget.title.icon = jobsIcon;
  widget.title.closable = true;
  widget.toolbar.hide();
  return widget;
}
