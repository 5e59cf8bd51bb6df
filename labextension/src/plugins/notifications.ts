/** Notifies the user of submitted and ended jobs. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import {
  ITranslator,
  nullTranslator,
  type TranslationBundle
} from '@jupyterlab/translation';

import { CommandIDs } from '../jobCommands';
import { elapsedSeconds, type Job } from '../jobs/job';
import { IJobs } from '../tokens';
import { formatDuration } from '../ui/format';
import { openActions } from '../ui/openResult';
import { failureText } from '../ui/statusText';
import type { Toast } from '../ui/toast';
import { ToastStack } from '../ui/toastStack';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-to-job:notifications',
  description: 'Tells when a job was submitted and when it has ended.',
  autoStart: true,
  requires: [IJobs],
  optional: [ITranslator],
  activate: (
    { commands }: JupyterFrontEnd,
    jobs: IJobs,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_to_job');
    const toasts = new ToastStack(
      trans,
      () => void commands.execute(CommandIDs.showJobs)
    );
    jobs.submitted.connect((_, job: Job) => {
      const text = trans.__('Submitted as %1', job.name);
      toasts.show(job, { type: 'info', text });
    });
    jobs.settled.connect((_, job: Job) => {
      const actions = openActions(job, commands, trans);
      toasts.show(job, { ...endToast(job, trans), actions });
    });
  }
};

export default plugin;

/** The notification of a job's end. */
function endToast(job: Job, trans: TranslationBundle): Toast {
  const { name, state, delivery } = job;
  if (state === 'failed') {
    const text = trans.__('%1 failed: %2', name, failureText(job, trans));
    return { type: 'error', text };
  }
  const time = elapsedSeconds(job);
  const text =
    state === 'cancelled'
      ? trans.__('%1 was cancelled', name)
      : time === null
        ? trans.__('%1 finished', name)
        : trans.__('%1 finished in %2', name, formatDuration(time, trans));
  if (delivery.state === 'held' || delivery.state === 'failed') {
    return {
      type: 'warning',
      text: trans.__(
        '%1, but its notebook could not be delivered: %2',
        text,
        delivery.message ?? ''
      )
    };
  }
  return { type: state === 'cancelled' ? 'info' : 'success', text };
}
