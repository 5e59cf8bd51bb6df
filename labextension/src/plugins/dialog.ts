/** Provides the dialog, and tells it how the copying of files goes. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import type { Event } from '@jupyterlab/services';
import { IStateDB } from '@jupyterlab/statedb';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { Client } from '../client';
import { Desk } from '../dialog/desk';
import type { Copying } from '../dialog/model';
import { SUBMISSION_EVENT } from '../job';
import { ISubmitDialog } from '../tokens';

const plugin: JupyterFrontEndPlugin<ISubmitDialog> = {
  id: 'jupyter-to-job:dialog',
  description: 'Asks for flavor, device and the rest before it submits.',
  autoStart: true,
  provides: ISubmitDialog,
  optional: [IStateDB, ITranslator],
  activate: (
    { serviceManager }: JupyterFrontEnd,
    state: IStateDB | null,
    translator: ITranslator | null
  ): ISubmitDialog => {
    const desk = new Desk(
      new Client(serviceManager.serverSettings),
      state,
      (translator ?? nullTranslator).load('jupyter_to_job')
    );
    serviceManager.events.stream.connect((_, emission: Event.Emission) => {
      if (emission.schema_id === SUBMISSION_EVENT) {
        const { key, ...copying } = emission as unknown as Told;
        desk.observe(key, copying);
      }
    });
    return desk;
  }
};

/** What an event of a submission says. */
type Told = Copying & { key: string };

export default plugin;
