/** The button that switches notifications of the computer on and off. */
import { bellIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import { type ReactElement, useEffect, useReducer } from 'react';

import { CommandIDs } from '../jobCommands';
import { pressGate } from '../ui/press';

type Props = { commands: CommandRegistry };

/** It is there if the command is: its plugin may be disabled. */
export function NotifyButton({ commands }: Props): ReactElement | null {
  const [, rerender] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    const onChanged = (
      _: CommandRegistry,
      { id }: CommandRegistry.ICommandChangedArgs
    ) => {
      if (id === CommandIDs.desktop) {
        pressGate.run(rerender);
      }
    };
    commands.commandChanged.connect(onChanged);
    return () => {
      commands.commandChanged.disconnect(onChanged);
      pressGate.forget(rerender);
    };
  }, [commands]);
  return !commands.hasCommand(CommandIDs.desktop) ? null : (
    <button
      className="jp-ToJob-notify"
      aria-pressed={commands.isToggled(CommandIDs.desktop)}
      aria-label={commands.label(CommandIDs.desktop)}
      title={commands.caption(CommandIDs.desktop)}
      onClick={() => void commands.execute(CommandIDs.desktop)}
    >
      <bellIcon.react tag="span" aria-hidden="true" />
    </button>
  );
}
