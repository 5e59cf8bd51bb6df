/** Notifications of the computer, with the command and the button that switch them. */
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
import { bellIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';

import { CommandIDs } from '../jobCommands';
import type { Job } from '../jobs/job';
import { DesktopNotifier } from '../notify/desktopNotifier';
import { DesktopSwitch } from '../notify/desktopSwitch';
import type { Permission } from '../notify/permission';
import { Presence } from '../notify/presence';
import { IPreferences, RegistryPreferences } from '../settings/preferences';
import { IJobs } from '../tokens';
import { showToast } from '../ui/toast';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-to-job:desktop',
  description: 'Shows notifications of the computer when jobs end.',
  autoStart: true,
  requires: [IJobs],
  optional: [IPreferences, ICommandPalette, ITranslator],
  activate: (
    { commands, serviceManager }: JupyterFrontEnd,
    jobs: IJobs,
    optionalPreferences: IPreferences | null,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_to_job');
    const preferences = optionalPreferences ?? new RegistryPreferences();
    const desktopSwitch = new DesktopSwitch(preferences);
    const scope = `jupyter-to-job ${serviceManager.serverSettings.baseUrl}`;
    const notifier = new DesktopNotifier({
      preferences,
      presence: new Presence(scope),
      trans,
      scope,
      show: job => showJob(commands, job)
    });
    jobs.settled.connect((_, job) => notifier.tell(job));

    addSwitch(commands, desktopSwitch, trans);
    const category = trans.__('Jobs');
    palette?.addItem({ command: CommandIDs.desktop, category });
    void preferences.ready.then(() => offerPermission(desktopSwitch, trans));
  }
};

export default plugin;

function showJob(commands: CommandRegistry, job: Job | null): void {
  void commands.execute(
    CommandIDs.showJobs,
    job === null ? {} : { name: job.name }
  );
}

function addSwitch(
  commands: CommandRegistry,
  desktopSwitch: DesktopSwitch,
  trans: TranslationBundle
): void {
  commands.addCommand(CommandIDs.desktop, {
    label: trans.__('Desktop Notifications of Jobs'),
    caption: trans.__(
      'Have your computer tell you when a job ends, while Jupyter is not in front'
    ),
    icon: bellIcon,
    describedBy: { args: { type: 'object', properties: {} } },
    isToggleable: true,
    isToggled: () => desktopSwitch.isOn,
    execute: async () => {
      const wasOn = desktopSwitch.isOn;
      const permission = await desktopSwitch.toggle();
      tellOutcome(wasOn, permission, trans);
      return desktopSwitch.isOn;
    }
  });
  desktopSwitch.changed.connect(() =>
    commands.notifyCommandChanged(CommandIDs.desktop)
  );
}

function tellOutcome(
  wasOn: boolean,
  permission: Permission,
  trans: TranslationBundle
): void {
  const on = trans.__(
    'Your computer tells you when a job ends, while Jupyter is not in front.'
  );
  const off = trans.__('Your computer no longer tells you when jobs end.');
  const problem = permissionProblem(permission, trans);
  showToast(
    problem === null
      ? { type: 'info', text: wasOn ? off : on }
      : { type: 'warning', text: problem },
    trans
  );
}

/** Why the browser shows none, and what to do; null if it does. */
function permissionProblem(
  permission: Permission,
  trans: TranslationBundle
): string | null {
  switch (permission) {
    case 'granted':
      return null;
    case 'default':
      return trans.__(
        'The browser was not answered, so it shows no notifications.'
      );
    case 'denied':
      return trans.__(
        'The browser blocks notifications of this page. Allow them by the icon beside its address, then try again.'
      );
    case 'insecure':
      return trans.__(
        'Browsers show notifications of pages with HTTPS only, and this page has none.'
      );
    case 'missing':
      return trans.__('This browser has no notifications.');
  }
}

/**
 * The setting may be on where the browser was never asked, in another browser for example, and when
 * it was changed in the settings editor. A button asks then, once a page.
 */
function offerPermission(
  desktopSwitch: DesktopSwitch,
  trans: TranslationBundle
): void {
  let isOffered = false;
  const offer = () => {
    if (desktopSwitch.isUnanswered && !isOffered) {
      isOffered = true;
      const text = trans.__(
        'The browser has to allow notifications of jobs first.'
      );
      const callback = () =>
        void desktopSwitch
          .switchOn()
          .then(permission => tellOutcome(false, permission, trans));
      const label = trans.__('Allow…');
      showToast({ type: 'info', text, actions: [{ label, callback }] }, trans);
    }
  };
  desktopSwitch.changed.connect(offer);
  offer();
}
