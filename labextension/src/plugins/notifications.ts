/** Notifies the user of submitted and ended jobs. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { GroupCommandIDs } from '../groupCommands';
import { CommandIDs } from '../jobCommands';
import type { Job } from '../jobs/job';
import { endToast } from '../notify/endText';
import { IPreferences, RegistryPreferences } from '../settings/preferences';
import { IJobs } from '../tokens';
import { detailsActions } from '../ui/detailsAction';
import { GroupToasts } from '../ui/groupToasts';
import { openActions } from '../ui/openResult';
import { ToastStack } from '../ui/toastStack';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-to-job:notifications',
  description: 'Tells when a job was submitted and when it has ended.',
  autoStart: true,
  requires: [IJobs],
  optional: [ITranslator, IPreferences],
  activate: (
    { commands, serviceManager: { contents } }: JupyterFrontEnd,
    jobs: IJobs,
    translator: ITranslator | null,
    optionalPreferences: IPreferences | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_to_job');
    const preferences = optionalPreferences ?? new RegistryPreferences();
    const isShown = ({ state }: Pick<Job, 'state'>) => {
      const { toasts: shown } = preferences.current;
      return shown === 'failures' ? state === 'failed' : shown !== 'none';
    };
    const toasts = new ToastStack(
      trans,
      () => void commands.execute(CommandIDs.showJobs)
    );
    const tellSubmitted = (job: Job) => {
      const text = trans.__('Submitted as %1', job.name);
      const actions = detailsActions(job.name, commands, trans);
      toasts.show(job, { type: 'info', text, actions });
    };
    const tellEnd = (job: Job) => {
      if (!groups.takes(job) && isShown(job)) {
        const actions = openActions(job, commands, trans, contents);
        toasts.show(job, { ...endToast(job, trans), actions });
      }
    };
    const groups = new GroupToasts(jobs, trans, {
      isShown,
      tellSubmitted,
      tellEnd,
      showResults: group =>
        void commands.execute(GroupCommandIDs.results, { group })
    });
    jobs.submitted.connect((_, job: Job) => {
      if (preferences.current.toasts === 'all' && !groups.takesRerun(job)) {
        tellSubmitted(job);
      }
    });
    jobs.sweepSubmitted.connect((_, swept) => {
      if (preferences.current.toasts === 'all') {
        groups.onSubmitted(swept);
      }
    });
    jobs.settled.connect((_, job: Job) => tellEnd(job));
  }
};

export default plugin;
