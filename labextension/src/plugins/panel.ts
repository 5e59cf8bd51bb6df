/** The jobs panel in the left side bar, and the commands of a job. */
import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IStateDB } from '@jupyterlab/statedb';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { addJobCommands, CommandIDs } from '../jobCommands';
import { Client } from '../jobs/client';
import { PanelModel } from '../panel/model';
import { JobsPanel, PANEL_ID } from '../panel/panel';
import { IJobs, ISubmitDialog } from '../tokens';
import { jobsIcon } from '../ui/icons';

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
    ITranslator
  ],
  activate: (
    { commands, serviceManager, shell }: JupyterFrontEnd,
    jobs: IJobs,
    dialog: ISubmitDialog | null,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    state: IStateDB | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_to_job');
    const client = new Client(serviceManager.serverSettings);
    addJobCommands({ commands, jobs, journalApi: client, dialog, trans });

    const model = new PanelModel(jobs);
    const panel = new JobsPanel(model, commands, trans);
    shell.add(panel, 'left', { rank: 250, type: 'Jobs' });
    restorer?.add(panel, PANEL_ID);
    if (state !== null) {
      void persistGrouping(model, state);
    }

    commands.addCommand(CommandIDs.showJobs, {
      label: trans.__('Show Jobs'),
      caption: trans.__('Open the list of jobs'),
      icon: jobsIcon,
      describedBy: { args: { type: 'object', properties: {} } },
      execute: async () => {
        await Promise.resolve(); // after the command palette has restored the focus
        shell.activateById(PANEL_ID);
      }
    });
    palette?.addItem({
      command: CommandIDs.showJobs,
      category: trans.__('Jobs')
    });
  }
};

export default plugin;

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
