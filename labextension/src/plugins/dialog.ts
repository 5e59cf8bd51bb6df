/** Provides the submit dialog. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IStateDB } from '@jupyterlab/statedb';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { SubmitDialogs } from '../dialog/submitDialogs';
import { Client } from '../jobs/client';
import { IPreferences } from '../settings/preferences';
import { IJobs, ISubmitDialog } from '../tokens';

const plugin: JupyterFrontEndPlugin<ISubmitDialog> = {
  id: 'jupyter-to-job:dialog',
  description: 'Asks for flavor, device and the rest before it submits.',
  autoStart: true,
  provides: ISubmitDialog,
  requires: [IJobs],
  optional: [IStateDB, ITranslator, IPreferences],
  activate: (
    { serviceManager }: JupyterFrontEnd,
    jobs: IJobs,
    state: IStateDB | null,
    translator: ITranslator | null,
    preferences: IPreferences | null
  ): ISubmitDialog =>
    new SubmitDialogs(
      new Client(
        serviceManager.serverSettings,
        () => preferences?.current.resultsFolder ?? ''
      ),
      jobs,
      state,
      (translator ?? nullTranslator).load('jupyter_to_job'),
      preferences
    )
};

export default plugin;
