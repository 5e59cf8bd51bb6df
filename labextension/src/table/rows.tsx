/** A line of the table, and its cells. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ellipsesIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import { memo, type MouseEvent, type ReactElement } from 'react';

import { mainCommandOf } from '../jobCommands';
import { formatParameters } from '../jobs/filter';
import { elapsedSeconds, fullName, isFinal, type Job } from '../jobs/job';
import { formatDuration, formatExactly } from '../ui/format';
import { ProgressBar, useNow } from '../ui/progress';
import { StateIcon } from '../ui/stateIcon';
import { failureText, progressText, usageText } from '../ui/statusText';
import { ViewCommandIDs } from '../viewCommands';
import type { Column } from './columns';

export type RowServices = {
  commands: CommandRegistry;
  trans: TranslationBundle;
};

type RowProps = RowServices & {
  job: Job;
  /** The row's place among all rows, from 0. */
  index: number;
  columns: readonly Column[];
  isActive: boolean;
  isSelected: boolean;
  /** The texts of its cells, so that it renders again when another job changes them. */
  texts: string;
  onMenu: (event: MouseEvent<HTMLElement>, job: Job) => void;
  onToggle: (name: string, isRange: boolean) => void;
};

/** The rows before the first job: that of the headings. */
const HEAD_ROWS = 1;

/** The row of a job. It renders again only if what it shows changes. */
export const TableRow = memo(function TableRow(props: RowProps): ReactElement {
  const { job, index, columns, isActive, isSelected, trans } = props;
  const { onMenu, onToggle } = props;
  const { name } = job;
  const tabIndex = isActive ? 0 : -1;
  return (
    <div
      role="row"
      className={`jp-ToJobTable-line jp-mod-${job.state}`}
      data-name={name}
      aria-label={name}
      aria-rowindex={index + 1 + HEAD_ROWS}
      aria-selected={isSelected}
      tabIndex={tabIndex}
      style={{ top: `calc(${index} * var(--jp-ToJobTable-line))` }}
      onContextMenu={event => onMenu(event, job)}
    >
      <div role="gridcell" className="jp-ToJobTable-check">
        <input
          type="checkbox"
          tabIndex={tabIndex}
          aria-label={trans.__('Select %1', name)}
          checked={isSelected}
          onChange={({ nativeEvent }) =>
            onToggle(name, (nativeEvent as PointerEvent).shiftKey === true)
          }
        />
      </div>
      {columns.map(column => (
        <Cell {...props} key={column.id} column={column} tabIndex={tabIndex} />
      ))}
      <div role="gridcell" className="jp-ToJobTable-more">
        <button
          tabIndex={tabIndex}
          aria-haspopup="menu"
          aria-label={trans.__('More actions for %1', name)}
          title={trans.__('More actions')}
          onClick={event => onMenu(event, job)}
        >
          <ellipsesIcon.react tag="span" aria-hidden="true" />
        </button>
      </div>
    </div>
  );
});

type CellProps = RowServices & { job: Job; column: Column; tabIndex: number };

function Cell(props: CellProps): ReactElement {
  const { job, column, trans } = props;
  return (
    <div
      role="gridcell"
      className={column.isNumber ? 'jp-mod-number' : undefined}
      title={cellTitle(job, column, trans)}
    >
      <CellContent {...props} />
    </div>
  );
}

function CellContent(props: CellProps): ReactElement {
  const { job, column, trans, commands, tabIndex } = props;
  const { name, group } = job;
  switch (column.id) {
    case 'name': {
      const command = mainCommandOf(job, commands);
      return (
        <button
          className="jp-ToJobTable-link"
          tabIndex={tabIndex}
          title={`${fullName(job)}\n${commands.caption(command, { name })}`}
          onClick={() => void commands.execute(command, { name })}
        >
          {name}
        </button>
      );
    }
    case 'state':
      return (
        <span className="jp-ToJobTable-state">
          <StateIcon state={job.state} />
          <span>{column.text(job)}</span>
          {job.state === 'running' && <ProgressBar job={job} trans={trans} />}
        </span>
      );
    case 'duration':
      return <Duration job={job} trans={trans} />;
    case 'group':
      return group !== null && commands.hasCommand(ViewCommandIDs.results) ? (
        <button
          className="jp-ToJobTable-link"
          tabIndex={tabIndex}
          onClick={() =>
            void commands.execute(ViewCommandIDs.results, { group })
          }
        >
          {group}
        </button>
      ) : (
        <>{column.text(job)}</>
      );
    default:
      return <>{column.text(job)}</>;
  }
}

function Duration({
  job,
  trans
}: {
  job: Job;
  trans: TranslationBundle;
}): ReactElement {
  const now = useNow(job.started !== null && !isFinal(job));
  const seconds = elapsedSeconds(job, now);
  const shown =
    seconds !== null && !isFinal(job) ? Math.floor(seconds) : seconds;
  return <>{shown === null ? '' : formatDuration(shown, trans)}</>;
}

/** What the pointer tells of a cell: more than fits into it. */
function cellTitle(
  job: Job,
  column: Column,
  trans: TranslationBundle
): string | undefined {
  const moment = (time: string | null) =>
    time === null ? undefined : formatExactly(time);
  switch (column.id) {
    case 'name':
    case 'duration':
      return undefined;
    case 'state':
      return (
        (job.state === 'failed' ? failureText(job, trans) : job.message) ||
        progressText(job, trans) ||
        undefined
      );
    case 'parameters':
      return formatParameters(job) || undefined;
    case 'receipt':
      return usageText(job, trans) ?? undefined;
    case 'submitted':
      return moment(job.submitted);
    case 'started':
      return moment(job.started);
    case 'finished':
      return moment(job.finished);
    default:
      return column.text(job) || undefined;
  }
}
