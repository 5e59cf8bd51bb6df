/** Tells once, when the user comes back, which jobs ended while no page was open. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import type { Contents } from '@jupyterlab/services';
import {
  ITranslator,
  nullTranslator,
  type TranslationBundle
} from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';

import { CommandIDs } from '../jobCommands';
import { Client } from '../jobs/client';
import type { Job } from '../jobs/job';
import { endToast } from '../notify/endText';
import { findMissed, KnownStore, knownOf } from '../notify/missedJobs';
import { IPreferences, RegistryPreferences } from '../settings/preferences';
import { IJobs } from '../tokens';
import { serverScope } from '../ui/browserStore';
import { countsText, toastTypeOf } from '../ui/countsText';
import { openActions } from '../ui/openResult';
import { showToast, type Toast } from '../ui/toast';

/** How long changes are collected before they are kept, in milliseconds. */
const SAVE_MS = 500;

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-to-job:missed',
  description: 'Tells which jobs ended while no page was open.',
  autoStart: true,
  requires: [IJobs],
  optional: [IPreferences, ITranslator],
  activate: (
    { commands, serviceManager, restored }: JupyterFrontEnd,
    jobs: IJobs,
    optionalPreferences: IPreferences | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_to_job');
    const preferences = optionalPreferences ?? new RegistryPreferences();
    const settings = serviceManager.serverSettings;
    const store = new KnownStore(serverScope(settings.baseUrl));
    const tell = async () => {
      const known = store.load();
      const missed =
        known === null
          ? []
          : await findMissed(known, jobs.all, new Client(settings));
      await Promise.all([preferences.ready, restored, untilVisible()]);
      if (missed.length > 0 && preferences.current.tellMissed) {
        const { contents } = serviceManager;
        showToast(missedToast(missed, commands, contents, trans), trans);
      }
    };
    void untilLoaded(jobs)
      .then(tell)
      .catch(error => {
        console.warn('jupyter-to-job: it is not known what ended', error);
      })
      .finally(() => keep(jobs, store));
  }
};

export default plugin;

/** The notification of jobs that ended meanwhile. */
export function missedToast(
  missed: Job[],
  commands: CommandRegistry,
  contents: Contents.IManager,
  trans: TranslationBundle
): Toast {
  const [job] = missed;
  if (missed.length === 1) {
    const { type, text } = endToast(job!, trans);
    return {
      type,
      text: trans.__('While you were away: %1', text),
      actions: openActions(job!, commands, trans, contents)
    };
  }
  const callback = () => void commands.execute(CommandIDs.showJobs);
  return {
    type: toastTypeOf(missed),
    text: trans._n(
      'While you were away %1 job ended: %2',
      'While you were away %1 jobs ended: %2',
      missed.length,
      countsText(missed, trans)
    ),
    actions: [{ label: trans.__('Show Jobs'), callback }]
  };
}

/** Keep what the user knows, while a page shows it. */
function keep(jobs: IJobs, store: KnownStore): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const save = () => {
    clearTimeout(timer);
    timer = undefined;
    if (isVisible() && jobs.isLoaded) {
      store.save(knownOf(jobs.all));
    }
  };
  const saveSoon = () => {
    timer ??= setTimeout(save, SAVE_MS);
  };
  jobs.changed.connect(saveSoon);
  jobs.removed.connect(saveSoon);
  document.addEventListener('visibilitychange', saveSoon);
  window.addEventListener('pagehide', () => {
    if (timer !== undefined) {
      save();
    }
  });
  save();
}

function untilLoaded(jobs: IJobs): Promise<void> {
  return new Promise(resolve => {
    const onChanged = () => {
      if (jobs.isLoaded) {
        jobs.conditionChanged.disconnect(onChanged);
        resolve();
      }
    };
    jobs.conditionChanged.connect(onChanged);
    onChanged();
  });
}

function untilVisible(): Promise<void> {
  return new Promise(resolve => {
    const onChanged = () => {
      if (isVisible()) {
        document.removeEventListener('visibilitychange', onChanged);
        resolve();
      }
    };
    document.addEventListener('visibilitychange', onChanged);
    onChanged();
  });
}

function isVisible(): boolean {
  return document.visibilityState === 'visible';
}
