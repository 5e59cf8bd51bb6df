/** Shows in the status bar how many jobs run and wait. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';

import { CommandIDs } from '../jobCommands';
import { JobCounts } from '../statusBar/jobCounts';
import { createStatusItem } from '../statusBar/statusItem';
import { IJobs } from '../tokens';
import { pressGate } from '../ui/press';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-to-job:status',
  description: 'Shows in the status bar how many jobs run and wait.',
  autoStart: true,
  requires: [IJobs],
  optional: [IStatusBar, ITranslator],
  activate: (
    { commands }: JupyterFrontEnd,
    jobs: IJobs,
    statusBar: IStatusBar | null,
    translator: ITranslator | null
  ): void => {
    if (statusBar === null) {
      return; // Notebook 7 has none.
    }
    const counts = new JobCounts(jobs);
    const activeStateChanged = new Signal<JobCounts, void>(counts);
    // An item that appears moves the others: not while one is being pressed.
    const update = () => activeStateChanged.emit();
    counts.changed.connect(() => pressGate.run(update));
    statusBar.registerStatusItem(plugin.id, {
      item: createStatusItem({
        counts,
        trans: (translator ?? nullTranslator).load('jupyter_to_job'),
        onOpen: () => void commands.execute(CommandIDs.showJobs)
      }),
      align: 'left',
      rank: 20,
      isActive: () => counts.running + counts.waiting > 0,
      activeStateChanged
    });
  }
};

export default plugin;
