/** The menu of a job, with all its commands. */
import type { CommandRegistry } from '@lumino/commands';
import { Menu } from '@lumino/widgets';
import type { MouseEvent } from 'react';

import { CommandIDs } from '../jobCommands';
import type { Job } from '../jobs/job';

const MENU_ITEMS: readonly (string | null)[] = [
  CommandIDs.open,
  CommandIDs.watch,
  CommandIDs.logs,
  CommandIDs.deliver,
  CommandIDs.source,
  null,
  CommandIDs.cancel,
  null,
  CommandIDs.submitCurrent,
  CommandIDs.rerun,
  CommandIDs.rerunWith,
  CommandIDs.copy,
  null,
  CommandIDs.delete
];

/** Open the menu at the pointer, or below the button that was pressed. */
export function openJobMenu(
  event: MouseEvent<HTMLElement>,
  { name }: Job,
  { commands }: { commands: CommandRegistry }
): void {
  event.preventDefault();
  event.stopPropagation();
  const menu = new Menu({ commands });
  for (const command of MENU_ITEMS) {
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
