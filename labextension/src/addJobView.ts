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

/** A view's place in the main area. It knows the notebook, so that it is restored without asking. */
class JobTab extends MainAreaWidget<JobWidget> {
  constructor(
    content: JobWidget,
    readonly notebook: string
  ) {
    super({ content });
  }
}

type Tracker = WidgetTracker<JobTab>;

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
  const open = async (args: ReadonlyPartialJSONObject) => {
    const widget = await provideView(tracker, jobs, args, options);
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
        return await open(args);
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
      args: ({ content, notebook }) => ({ name: content.jobName, notebook }),
      name: ({ content }) => content.jobName
    })
    .finally(() => (isRestoring = false));
}

/**
 * Find or create the view that a call means. JupyterLab waits for restored views: their calls name
 * the notebook, so that they need not wait for the server.
 */
async function provideView(
  tracker: Tracker,
  jobs: IJobs,
  args: ReadonlyPartialJSONObject,
  options: JobViewOptions
): Promise<JobTab> {
  const name = jobNameOf(args);
  if (typeof args.notebook !== 'string') {
    const { notebook } = await jobs.find(name);
    return findOrCreate(tracker, name, options, notebook);
  }
  const widget = await findOrCreate(tracker, name, options, args.notebook);
  // The view itself says what else went wrong.
  jobs.find(name).catch(error => isNotFound(error) && widget.dispose());
  return widget;
}

async function findOrCreate(
  tracker: Tracker,
  name: string,
  options: JobViewOptions,
  notebook: string
): Promise<JobTab> {
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
  const widget = createWidget(name, content, options, notebook);
  await tracker.add(widget);
  return widget;
}

function createWidget(
  name: string,
  content: JobWidget,
  { command, title, ariaLabel }: JobViewOptions,
  notebook: string
): JobTab {
  const widget = new JobTab(content, notebook);
  content.node.setAttribute('aria-label', ariaLabel(name));
  widget.id = `${command.replace(':', '-')}-${name}`;
  widget.title.label = title(name);
  widget.title.icon = jobsIcon;
  widget.title.closable = true;
  widget.toolbar.hide();
  return widget;
}
