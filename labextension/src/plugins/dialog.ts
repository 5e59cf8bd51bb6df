/** Provides the submit dialog. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { SubmitDialogs } from '../dialog/submitDialogs';
import { Client } from '../jobs/client';
import { IPreferences } from '../settings/preferences';
import { IJobs, ISubmitDialog } from '../tokens';
import { serverScope } from '../ui/browserStore';

const plugin: JupyterFrontEndPlugin<ISubmitDialog> = {
  id: 'jupyter-to-job:dialog',
  description: 'Asks for flavor, device and the rest before it submits.',
  autoStart: true,
  provides: ISubmitDialog,
  requires: [IJobs],
  optional: [ITranslator, IPreferences],
  activate: (
    { serviceManager }: JupyterFrontEnd,
    jobs: IJobs,
    translator: ITranslator | null,
    preferences: IPreferences | null
  ): ISubmitDialog =>
    new SubmitDialogs(
      new Client(
        serviceManager.serverSettings,
        () => preferences?.current.resultsFolder ?? ''
      ),
      jobs,
      serverScope(serviceManager.serverSettings.baseUrl),
      (translator ?? nullTranslator).load('jupyter_to_job'),
      preferences
    )
};

export default plugin;
