/**
 * The command `jupyter-to-job:submit` and the SUBMIT JOB button in notebook toolbars. A button
 * submits the notebook it belongs to, whichever is selected or focused.
 */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, IToolbarWidgetRegistry } from '@jupyterlab/apputils';
import { INotebookTracker, type NotebookPanel } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { NotebookSaver } from '../submit/notebookSaver';
import { describeSubmitArguments, SUBMIT } from '../submit/submitArguments';
import { createSubmitButton } from '../submit/submitButton';
import { Submitter } from '../submit/submitter';
import { IJobs, ISubmitDialog } from '../tokens';
import { submitIcon } from '../ui/icons';

/** The toolbar item's name in the settings, by which users can move or hide it. */
const TOOLBAR_ITEM = 'jupyter-to-job-submit';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-to-job:submit',
  description: 'Adds SUBMIT JOB to notebooks, menus and the command palette.',
  autoStart: true,
  requires: [IJobs, ISubmitDialog],
  optional: [
    INotebookTracker,
    ITranslator,
    IToolbarWidgetRegistry,
    ICommandPalette
  ],
  activate: (
    { commands, serviceManager: { contents } }: JupyterFrontEnd,
    jobs: IJobs,
    dialog: ISubmitDialog,
    tracker: INotebookTracker | null,
    translator: ITranslator | null,
    toolbar: IToolbarWidgetRegistry | null,
    palette: ICommandPalette | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_to_job');
    const saver = new NotebookSaver(tracker);
    const services = { contents, jobs, saver, trans };
    const submitter = new Submitter(services, dialog, tracker, () =>
      commands.notifyCommandChanged(SUBMIT)
    );
    tracker?.currentChanged.connect(submitter.notifyReadiness, submitter);

    commands.addCommand(SUBMIT, {
      label: ({ ask }) =>
        ask === false
          ? trans.__('Submit Job with the Last Choices')
          : trans.__('SUBMIT JOB'),
      caption: trans.__('Save this notebook and run it as a job'),
      icon: submitIcon,
      describedBy: { args: describeSubmitArguments(trans) },
      isEnabled: args => submitter.isReady(args),
      execute: args => submitter.execute(args)
    });
    toolbar?.addFactory<NotebookPanel>('Notebook', TOOLBAR_ITEM, panel =>
      createSubmitButton(commands, SUBMIT, panel)
    );
    const category = trans.__('Jobs');
    palette?.addItem({ command: SUBMIT, category });
    palette?.addItem({ command: SUBMIT, category, args: { ask: false } });
  }
};

export default plugin;
