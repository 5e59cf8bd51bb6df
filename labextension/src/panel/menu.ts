/** The menu of a job, with all its commands. */
import type { CommandRegistry } from '@lumino/commands';
import { Menu } from '@lumino/widgets';
import type { MouseEvent } from 'react';

import { CommandIDs } from '../jobCommands';
import type { Job } from '../jobs/job';
import { USE_PARAMETERS } from '../submit/useParameters';
import { ViewCommandIDs } from '../viewCommands';

const MENU_ITEMS: readonly (string | null)[] = [
  ViewCommandIDs.details,
  CommandIDs.open,
  CommandIDs.watch,
  CommandIDs.logs,
  CommandIDs.deliver,
  CommandIDs.exportHtml,
  CommandIDs.source,
  ViewCommandIDs.results,
  CommandIDs.bringBack,
  null,
  CommandIDs.cancel,
  null,
  CommandIDs.submitCurrent,
  CommandIDs.rerun,
  CommandIDs.rerunWith,
  USE_PARAMETERS,
  CommandIDs.copy,
  null,
  CommandIDs.delete
];

/** Open the menu at the pointer, or below the button that was pressed. */
export function openJobMenu(
  event: MouseEvent<HTMLElement>,
  { name, group }: Job,
  { commands }: { commands: CommandRegistry }
): void {
  event.preventDefault();
  event.stopPropagation();
  const menu = new Menu({ commands });
  for (const command of MENU_ITEMS) {
    if (command === ViewCommandIDs.results) {
      // The command, if there is one, is about a group.
      if (group !== null && commands.hasCommand(command)) {
        menu.addItem({ command, args: { group } });
      }
      continue;
    }
    menu.addItem(
      command === null ? { type: 'separator' } : { command, args: { name } }
    );
  }
  const opener = document.activeElement as HTMLElement | null;
  menu.aboutToClose.connect(() => {
    opener?.focus();
    requestAnimationFrame(() => menu.dispose()); // it cannot be disposed while it closes
  });
  const isPointer = event.clientX !== 0 || event.clientY !== 0;
  const { left, bottom } = event.currentTarget.getBoundingClientRect();
  menu.open(
    isPointer ? event.clientX : left,
    isPointer ? event.clientY : bottom
  );
}
