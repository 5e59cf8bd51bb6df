/** The button of a notification that leads to the details of its job. */
import type { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';

/** The command that shows the details of the job `name`. */
export const SHOW_DETAILS = 'jupyter-to-job:show-details';

/** The button, if there is a plugin that shows details. */
export function detailsActions(
  name: string,
  commands: CommandRegistry,
  trans: TranslationBundle
): Notification.IAction[] {
  const callback = () => void commands.execute(SHOW_DETAILS, { name });
  return commands.hasCommand(SHOW_DETAILS)
    ? [{ label: trans.__('Details'), callback }]
    : [];
}
