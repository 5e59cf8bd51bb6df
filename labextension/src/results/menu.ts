/** The menu of a run in the matrix. */
import type { CommandRegistry } from '@lumino/commands';
import { Menu } from '@lumino/widgets';
import type { MouseEvent } from 'react';

import { CommandIDs } from '../jobCommands';
import { USE_PARAMETERS } from '../submit/useParameters';
import { ViewCommandIDs } from '../viewCommands';

const MENU_ITEMS: readonly (string | null)[] = [
  ViewCommandIDs.details,
  CommandIDs.open,
  CommandIDs.watch,
  CommandIDs.logs,
  CommandIDs.exportHtml,
  null,
  CommandIDs.rerun,
  CommandIDs.rerunWith,
  USE_PARAMETERS,
  CommandIDs.copy,
  null,
  CommandIDs.cancel
];

/** Open the menu of a run below the button that was pressed. */
export function openRunMenu(
  event: MouseEvent<HTMLElement>,
  name: string,
  commands: CommandRegistry
): void {
  const menu = new Menu({ commands });
  for (const command of MENU_ITEMS) {
    if (command === null) {
      menu.addItem({ type: 'separator' });
    } else if (commands.hasCommand(command)) {
      menu.addItem({ command, args: { name } });
    }
  }
  const opener = event.currentTarget;
  menu.aboutToClose.connect(() => {
    opener.focus();
    requestAnimationFrame(() => menu.dispose()); // it cannot be disposed while it closes
  });
  const { left, bottom } = opener.getBoundingClientRect();
  menu.open(left, bottom);
}
