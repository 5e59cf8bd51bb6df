/** The results of a group side by side, in the main area, and the commands of groups. */
import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { MainAreaWidget, WidgetTracker } from '@jupyterlab/apputils';
import {
  ITranslator,
  nullTranslator,
  type TranslationBundle
} from '@jupyterlab/translation';

import {
  addGroupCommands,
  describeGroupArguments,
  GroupCommandIDs,
  groupOf
} from '../groupCommands';
import { describeJobArguments, jobNameOf } from '../jobCommands';
import { Client } from '../jobs/client';
import type { ResultsView } from '../results/view';
import { IPreferences, RegistryPreferences } from '../settings/preferences';
import { USE_PARAMETERS, useParameters } from '../submit/useParameters';
import { IJobs } from '../tokens';
import { showError } from '../ui/errors';
import { jobsIcon } from '../ui/icons';
import { activate, addToMainArea } from '../ui/place';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-to-job:results',
  description: 'Compares the jobs of a group, and acts on all of them.',
  autoStart: true,
  requires: [IJobs],
  optional: [ILayoutRestorer, ITranslator, IPreferences],
  activate: (
    app: JupyterFrontEnd,
    jobs: IJobs,
    restorer: ILayoutRestorer | null,
    translator: ITranslator | null,
    optionalPreferences: IPreferences | null
  ): void => {
    const preferences = optionalPreferences ?? new RegistryPreferences();
    const trans = (translator ?? nullTranslator).load('jupyter_to_job');
    const { commands, serviceManager } = app;
    const client = new Client(serviceManager.serverSettings);
    addGroupCommands({ commands, jobs, preferences, trans });
    addResultsCommand(app, jobs, client, restorer, trans);
    commands.addCommand(USE_PARAMETERS, {
      label: trans.__('Copy Parameters into Notebook'),
      caption: trans.__(
        'Change the parameters cell of the notebook that was submitted'
      ),
      describedBy: { args: describeJobArguments(trans) },
      isVisible: args =>
        Object.keys(jobs.get(jobNameOf(args))?.parameters ?? {}).length > 0,
      isEnabled: args => jobNameOf(args) !== '',
      execute: async args => {
        try {
          const job = await jobs.find(jobNameOf(args));
          await useParameters(job, { commands, journalApi: client, trans });
        } catch (error) {
          showError(error, trans, false);
        }
      }
    });
  }
};

export default plugin;

/** Add the command that opens one view for each group, and restores it on reload. */
function addResultsCommand(
  { commands, shell }: JupyterFrontEnd,
  jobs: IJobs,
  client: Client,
  restorer: ILayoutRestorer | null,
  trans: TranslationBundle
): void {
  const command = GroupCommandIDs.results;
  const tracker = new WidgetTracker<MainAreaWidget<ResultsView>>({
    namespace: command.replace(':', '-')
  });
  const open = async (group: string) => {
    // Loaded when the first results are shown, and not with the page.
    const { ResultsView } = await import('../results/view');
    let widget = tracker.find(({ content }) => content.group === group);
    if (widget === undefined) {
      const services = { commands, jobs, resultsApi: client, trans };
      widget = createWidget(new ResultsView(group, services), trans);
      addToMainArea(shell, widget, 'Results');
      await tracker.add(widget);
    }
    activate(shell, widget);
    return widget;
  };
  commands.addCommand(command, {
    label: trans.__('Show Results Side by Side'),
    caption: trans.__(
      'Compare parameters, metrics, time and memory of the runs'
    ),
    describedBy: { args: describeGroupArguments(trans) },
    isVisible: args => groupOf(args) !== '',
    isEnabled: args => groupOf(args) !== '',
    execute: async args => {
      try {
        return await open(groupOf(args));
      } catch (error) {
        showError(error, trans, false);
        return null;
      }
    }
  });
  void restorer?.restore(tracker, {
    command,
    args: ({ content }) => ({ group: content.group }),
    name: ({ content }) => content.group
  });
}

function createWidget(
  content: ResultsView,
  trans: TranslationBundle
): MainAreaWidget<ResultsView> {
  const { group } = content;
  const widget = new MainAreaWidget({ content });
  // JupyterLab calls every main area the same.
  content.node.setAttribute('aria-label', trans.__('Results of %1', group));
  widget.id = `jupyter-to-job-results-${group}`;
  widget.title.label = trans.__('Results of %1', group);
  widget.title.icon = jobsIcon;
  widget.title.closable = true;
  widget.toolbar.hide();
  return widget;
}
