/** A line of the list that shows all jobs of a group, and what can be done with them. */
import { caretDownIcon, caretRightIcon } from '@jupyterlab/ui-components';
import { type ReactElement, useEffect } from 'react';

import { failedJobs, GroupCommandIDs } from '../groupCommands';
import type { IJobs } from '../tokens';
import { GroupProgress } from '../ui/groupProgress';
import type { RowServices } from './row';
import type { SweepRow } from './sweeps';

type Props = RowServices & {
  jobs: IJobs;
  row: SweepRow;
  isActive: boolean;
  onToggle: () => void;
};

export function SweepLine(props: Props): ReactElement {
  const { jobs, row, trans, isActive, onToggle } = props;
  const { group, isOpen } = row;
  const Caret = isOpen ? caretDownIcon : caretRightIcon;
  const notebooks = [...new Set(row.jobs.map(({ notebook }) => notebook))];
  useEffect(() => {
    // Only what is in sight is loaded; a failed attempt is repeated at the next change.
    jobs.loadGroup(group).catch(error => {
      console.warn('jupyter-to-job: a group could not be loaded', error);
    });
  });
  return (
    <article className="jp-ToJob-row jp-ToJob-sweep" aria-label={group}>
      <Caret.react className="jp-ToJob-state" tag="span" aria-hidden="true" />
      <div className="jp-ToJob-what">
        <button
          className="jp-ToJob-name"
          data-main
          tabIndex={isActive ? 0 : -1}
          aria-expanded={isOpen}
          title={trans.__('Show or hide the jobs of the group')}
          onClick={onToggle}
        >
          {group}
        </button>
        <GroupProgress group={group} jobs={row.jobs} trans={trans} />
        <p className="jp-ToJob-origin">{notebooks.join(trans.__(', '))}</p>
        <SweepActions {...props} />
      </div>
    </article>
  );
}

function SweepActions(props: Props): ReactElement {
  const { commands, row, trans, isActive } = props;
  const { group } = row;
  const button = (command: string, label: string, ariaLabel: string) =>
    commands.isVisible(command, { group }) && (
      <button
        className="jp-ToJob-action"
        tabIndex={isActive ? 0 : -1}
        aria-label={ariaLabel}
        title={commands.caption(command, { group })}
        onClick={() => void commands.execute(command, { group })}
      >
        {label}
      </button>
    );
  const failed = failedJobs(row.jobs).length;
  return (
    <div className="jp-ToJob-actions">
      {button(
        GroupCommandIDs.results,
        trans.__('Results'),
        trans.__('Compare the results of %1', group)
      )}
      {button(
        GroupCommandIDs.rerunFailed,
        trans.__('Rerun Failed (%1)', failed),
        trans.__('Rerun what failed of %1 (%2)', group, failed)
      )}
      {button(
        GroupCommandIDs.cancel,
        trans.__('Cancel'),
        trans.__('Cancel the jobs of %1', group)
      )}
      {button(
        GroupCommandIDs.delete,
        trans.__('Delete…'),
        trans.__('Delete the jobs of %1', group)
      )}
    </div>
  );
}
