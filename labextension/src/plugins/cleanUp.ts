/** The command that removes old results from the workspace. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import {
  ITranslator,
  nullTranslator,
  type TranslationBundle
} from '@jupyterlab/translation';

import type { Outcome } from '../cleanUp/model';
import { Client } from '../jobs/client';
import { errorText, showError } from '../ui/errors';
import { formatBytes } from '../ui/format';
import { showToast } from '../ui/toast';
import { ViewCommandIDs } from '../viewCommands';

/** JupyterLab's command, which shows what is in the folder now. */
const REFRESH = 'filebrowser:refresh';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-to-job:clean-up',
  description: 'Removes old results from the workspace.',
  autoStart: true,
  optional: [ITranslator, ICommandPalette],
  activate: (
    { commands, serviceManager }: JupyterFrontEnd,
    translator: ITranslator | null,
    palette: ICommandPalette | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_to_job');
    const client = new Client(serviceManager.serverSettings);
    const command = ViewCommandIDs.cleanUp;
    commands.addCommand(command, {
      label: trans.__('Clean Up Old Results…'),
      caption: trans.__('Remove old delivered notebooks, after a question'),
      describedBy: { args: { type: 'object', properties: {} } },
      execute: async () => {
        try {
          const outcome = await cleanUp(client, trans);
          if (outcome !== null) {
            tellOutcome(outcome, trans);
            if (commands.hasCommand(REFRESH)) {
              void commands.execute(REFRESH);
            }
          }
        } catch (error) {
          showError(error, trans, false);
        }
      }
    });
    palette?.addItem({ command, category: trans.__('Jobs') });
  }
};

export default plugin;

/** Ask and remove; null if the user said no. */
async function cleanUp(
  client: Client,
  trans: TranslationBundle
): Promise<Outcome | null> {
  const [{ CleanUpModel }, { confirmCleanUp }] = await Promise.all([
    import('../cleanUp/model'),
    import('../cleanUp/dialog')
  ]);
  const model = new CleanUpModel(client);
  return (await confirmCleanUp({ model, trans })) ? model.remove() : null;
}

function tellOutcome(
  { removed, size, changed, errors }: Outcome,
  trans: TranslationBundle
): void {
  const sentences = [
    trans._n(
      '%1 result was removed: %2.',
      '%1 results were removed: %2.',
      removed,
      formatBytes(size)
    )
  ];
  if (changed > 0) {
    sentences.push(
      trans._n(
        '%1 was changed since and stays.',
        '%1 were changed since and stay.',
        changed
      )
    );
  }
  if (errors.length > 0) {
    sentences.push(errorText(errors[0], trans, false));
  }
  const type = errors.length > 0 ? 'warning' : 'success';
  showToast({ type, text: sentences.join(' ') }, trans);
}
