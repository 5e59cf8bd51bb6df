/**
 * The command `jupyter-to-job:submit`, and the button SUBMIT JOB in every notebook's toolbar. The
 * button belongs to the notebook it stands on, whatever is selected or focused elsewhere.
 */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import {
  ICommandPalette,
  IToolbarWidgetRegistry,
  SemanticCommand
} from '@jupyterlab/apputils';
import { INotebookTracker, type NotebookPanel } from '@jupyterlab/notebook';
import {
  ITranslator,
  nullTranslator,
  type TranslationBundle
} from '@jupyterlab/translation';
import type {
  ReadonlyJSONObject,
  ReadonlyPartialJSONObject
} from '@lumino/coreutils';

import { freeze } from '../freeze';
import { submitIcon } from '../icons';
import type { Job } from '../job';
import { IJobs } from '../tokens';
import { tellRefusal } from '../widgets/refusal';
import { SubmitButton } from '../widgets/submitButton';

/** The command that submits a notebook, and resolves to its job where one was accepted. */
export const SUBMIT = 'jupyter-to-job:submit';

/** The item's name in the settings, under which users may move or hide it. */
const TOOLBAR_ITEM = 'jupyter-to-job-submit';

/** The notebook that a call of the command means, if it is open. */
function panelOf(
  args: ReadonlyPartialJSONObject,
  tracker: INotebookTracker
): NotebookPanel | null {
  const id = args[SemanticCommand.WIDGET];
  return id === undefined
    ? tracker.currentWidget
    : (tracker.find(panel => panel.id === id) ?? null);
}

/** What the command takes, as a JSON schema. */
function describeArguments(trans: TranslationBundle): ReadonlyJSONObject {
  const description = trans.__(
    'The id of the notebook panel; the current one if left out'
  );
  return {
    type: 'object',
    properties: { [SemanticCommand.WIDGET]: { type: 'string', description } },
    additionalProperties: true
  };
}

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-to-job:submit',
  description: 'Adds SUBMIT JOB to the toolbar of notebooks.',
  autoStart: true,
  requires: [IJobs, INotebookTracker],
  optional: [ITranslator, IToolbarWidgetRegistry, ICommandPalette],
  activate: (
    { commands, serviceManager: { contents } }: JupyterFrontEnd,
    jobs: IJobs,
    tracker: INotebookTracker,
    translator: ITranslator | null,
    toolbar: IToolbarWidgetRegistry | null,
    palette: ICommandPalette | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_to_job');
    // One click is one job: until it is answered, its notebook takes no other.
    const sending = new WeakSet<NotebookPanel>();

    const submit = async (panel: NotebookPanel): Promise<Job | null> => {
      sending.add(panel);
      commands.notifyCommandChanged(SUBMIT);
      try {
        return await jobs.submit(await freeze(panel.context, contents, trans));
      } catch (error) {
        tellRefusal(error, trans);
        return null;
      } finally {
        sending.delete(panel);
        commands.notifyCommandChanged(SUBMIT);
      }
    };

    commands.addCommand(SUBMIT, {
      label: trans.__('SUBMIT JOB'),
      caption: trans.__('Save this notebook and run it as a job'),
      icon: submitIcon,
      describedBy: { args: describeArguments(trans) },
      isEnabled: args => {
        const panel = panelOf(args, tracker);
        return panel !== null && !sending.has(panel);
      },
      execute: args => {
        const panel = panelOf(args, tracker);
        return panel === null || sending.has(panel) ? null : submit(panel);
      }
    });
    tracker.currentChanged.connect(() => commands.notifyCommandChanged(SUBMIT));

    toolbar?.addFactory<NotebookPanel>(
      'Notebook',
      TOOLBAR_ITEM,
      panel => new SubmitButton(commands, SUBMIT, panel)
    );
    palette?.addItem({ command: SUBMIT, category: trans.__('Jobs') });
  }
};

export default plugin;
