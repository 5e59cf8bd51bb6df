/** The button of a notification that leads to the details of its job. */
import type { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';

import { ViewCommandIDs } from '../viewCommands';

/** The button, if there is a plugin that shows details. */
export function detailsActions(
  name: string,
  commands: CommandRegistry,
  trans: TranslationBundle
): Notification.IAction[] {
  const callback = () =>
    void commands.execute(ViewCommandIDs.details, { name });
  return commands.hasCommand(ViewCommandIDs.details)
    ? [{ label: trans.__('Details'), callback }]
    : [];
}
