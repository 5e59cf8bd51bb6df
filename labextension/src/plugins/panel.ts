/** The jobs panel in the left side bar, and the commands of a job. */
import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IStateDB } from '@jupyterlab/statedb';
import {
  ITranslator,
  nullTranslator,
  type TranslationBundle
} from '@jupyterlab/translation';

import {
  addJobCommands,
  CommandIDs,
  describeJobArguments,
  jobNameOf
} from '../jobCommands';
import { Client } from '../jobs/client';
import { PanelModel } from '../panel/model';
import { JobsPanel, PANEL_ID } from '../panel/panel';
import { IPreferences, RegistryPreferences } from '../settings/preferences';
import { IJobs, ISubmitDialog } from '../tokens';
import { showError } from '../ui/errors';
import { jobsIcon } from '../ui/icons';
import { activate, addToSideBar } from '../ui/place';

/** The key in the state database for whether jobs are grouped. */
const GROUPED_KEY = 'jupyter-to-job:panel-grouped';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-to-job:panel',
  description: 'Shows the jobs, and what can be done with them.',
  autoStart: true,
  requires: [IJobs],
  optional: [
    ISubmitDialog,
    ILayoutRestorer,
    ICommandPalette,
    IStateDB,
    ITranslator,
    IPreferences
  ],
  activate: (
    app: JupyterFrontEnd,
    jobs: IJobs,
    dialog: ISubmitDialog | null,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    state: IStateDB | null,
    translator: ITranslator | null,
    optionalPreferences: IPreferences | null
  ): void => {
    const { commands, serviceManager } = app;
    const preferences = optionalPreferences ?? new RegistryPreferences();
    const trans = (translator ?? nullTranslator).load('jupyter_to_job');
    const client = new Client(serviceManager.serverSettings);
    addJobCommands({
      commands,
      jobs,
      journalApi: client,
      exportApi: client,
      dialog,
      preferences,
      contents: serviceManager.contents,
      trans
    });

    const model = new PanelModel(jobs);
    const panel = new JobsPanel(model, commands, trans);
    const placed = addToSideBar(app, panel, {
      rank: 250,
      type: 'Jobs',
      label: trans.__('Jobs')
    });
    restorer?.add(panel, PANEL_ID);
    if (state !== null) {
      void persistGrouping(model, state);
    }

    addShowCommand(app, panel, model, placed, trans);
    palette?.addItem({
      command: CommandIDs.showJobs,
      category: trans.__('Jobs')
    });
  }
};

export default plugin;

/** Add the command that opens the panel, at a job if it is given a name. */
function addShowCommand(
  { commands, shell }: JupyterFrontEnd,
  panel: JobsPanel,
  model: PanelModel,
  placed: Promise<void>,
  trans: TranslationBundle
): void {
  commands.addCommand(CommandIDs.showJobs, {
    label: ({ isLauncher }) =>
      isLauncher === true ? trans.__('Jobs') : trans.__('Show Jobs'),
    caption: trans.__('Open the list of jobs'),
    icon: jobsIcon,
    describedBy: {
      args: { ...describeJobArguments(trans), required: [] }
    },
    execute: async args => {
      await placed; // and after the command palette has restored the focus
      activate(shell, panel);
      const name = jobNameOf(args);
      if (name !== '') {
        await model.jobs
          .find(name)
          .catch(error => showError(error, trans, false));
        model.reveal(name);
      }
    }
  });
}

/** Keep over reloads whether jobs are grouped. */
async function persistGrouping(
  model: PanelModel,
  state: IStateDB
): Promise<void> {
  model.set({ isGrouped: (await state.fetch(GROUPED_KEY)) === true });
  let savedValue = model.isGrouped;
  model.changed.connect(({ isGrouped }) => {
    if (isGrouped !== savedValue) {
      savedValue = isGrouped;
      void state.save(GROUPED_KEY, isGrouped);
    }
  });
}
