/** Provides the submit dialog. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IStateDB } from '@jupyterlab/statedb';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { SubmitDialogs } from '../dialog/submitDialogs';
import { Client } from '../jobs/client';
import { IJobs, ISubmitDialog } from '../tokens';

const plugin: JupyterFrontEndPlugin<ISubmitDialog> = {
  id: 'jupyter-to-job:dialog',
  description: 'Asks for flavor, device and the rest before it submits.',
  autoStart: true,
  provides: ISubmitDialog,
  requires: [IJobs],
  optional: [IStateDB, ITranslator],
  activate: (
    { serviceManager }: JupyterFrontEnd,
    jobs: IJobs,
    state: IStateDB | null,
    translator: ITranslator | null
  ): ISubmitDialog => {
    const dialogs = new SubmitDialogs(
      new Client(serviceManager.serverSettings),
      state,
      (translator ?? nullTranslator).load('jupyter_to_job')
    );
    jobs.copyProgressed.connect((_, progress) =>
      dialogs.onCopyProgress(progress)
    );
    return dialogs;
  }
};

export default plugin;
