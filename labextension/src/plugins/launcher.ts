/** A card in the launcher that opens the jobs. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILauncher } from '@jupyterlab/launcher';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { CommandIDs } from '../jobCommands';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-to-job:launcher',
  description: 'Adds the jobs to the launcher.',
  autoStart: true,
  optional: [ILauncher, ITranslator],
  activate: (
    _: JupyterFrontEnd,
    launcher: ILauncher | null,
    translator: ITranslator | null
  ): void => {
    // JupyterLab's own word, because cards of one category stand together.
    const trans = (translator ?? nullTranslator).load('jupyterlab');
    launcher?.add({
      command: CommandIDs.showJobs,
      args: { isLauncher: true },
      category: trans.__('Other'),
      rank: 100
    });
  }
};

export default plugin;
