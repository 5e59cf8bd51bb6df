/** Adds SUBMIT JOB to the file browser's menu. It sends the notebook as it is on disk. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { SUBMIT, SUBMIT_FILE } from '../submit/submitArguments';
import { submitIcon } from '../ui/icons';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-to-job:file-menu',
  description: 'Adds SUBMIT JOB to the menu of notebooks in the file browser.',
  autoStart: true,
  requires: [IFileBrowserFactory],
  optional: [ITranslator],
  activate: (
    { commands }: JupyterFrontEnd,
    { tracker }: IFileBrowserFactory,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_to_job');
    const selectedNotebook = () => {
      const items = [...(tracker.currentWidget?.selectedItems() ?? [])];
      const [item] = items;
      return items.length === 1 && item?.type === 'notebook' ? item : null;
    };
    commands.addCommand(SUBMIT_FILE, {
      label: trans.__('SUBMIT JOB'),
      caption: trans.__('Run the selected notebook as a job, as it is on disk'),
      icon: submitIcon,
      describedBy: { args: { type: 'object', properties: {} } },
      isVisible: () => selectedNotebook() !== null,
      execute: () => {
        const path = selectedNotebook()?.path;
        return path === undefined ? null : commands.execute(SUBMIT, { path });
      }
    });
  }
};

export default plugin;
