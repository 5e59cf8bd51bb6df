/** The name of a run, which opens its details. */
import type { CommandRegistry } from '@lumino/commands';
import type { ReactElement } from 'react';

import { CommandIDs } from '../jobCommands';
import { ViewCommandIDs } from '../viewCommands';

type Props = { commands: CommandRegistry; name: string };

/** Opens the job's details, or else its result, or what it has written so far. */
export function JobName({ commands, name }: Props): ReactElement {
  const command =
    [ViewCommandIDs.details, CommandIDs.open, CommandIDs.watch].find(
      id => commands.hasCommand(id) && commands.isVisible(id, { name })
    ) ?? CommandIDs.watch;
  return (
    <button
      className="jp-ToJobResults-name"
      title={commands.caption(command, { name })}
      onClick={() => void commands.execute(command, { name })}
    >
      {name}
    </button>
  );
}
