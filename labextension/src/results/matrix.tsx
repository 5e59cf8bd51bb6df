/** The matrix: a row for each run, with its parameters, metrics, time and what it used. */
import {
  caretDownEmptyThinIcon,
  caretUpEmptyThinIcon,
  ellipsesIcon
} from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import { type ReactElement, useState } from 'react';

import type { ResultColumn } from '../jobs/sweep';
import { StateIcon } from '../ui/stateIcon';
import { noteText, stateText } from '../ui/statusText';
import { useKeptFocus } from '../ui/useKeptFocus';
import { columnTitle, type Row, valueOf, valueText } from './columns';
import { JobName } from './jobName';
import { openRunMenu } from './menu';
import type { ResultsModel } from './model';
import { Picture, type PictureStore } from './pictures';

/** Rows that are shown at first: what has thousands is asked for. */
const FIRST_ROWS = 200;

export type MatrixServices = {
  commands: CommandRegistry;
  pictures: PictureStore;
  trans: TranslationBundle;
};

type Props = MatrixServices & { model: ResultsModel };

/** Find what gets the focus when a button goes: nothing that acts, for a key may be pressed twice. */
export function findFocusTarget(container: HTMLElement): HTMLElement | null {
  return (
    container.querySelector<HTMLElement>('.jp-ToJobResults-scroller') ??
    container.querySelector('h2')
  );
}

export function Matrix({
  model,
  container,
  ...services
}: Props & { container: HTMLElement }): ReactElement {
  const { trans } = services;
  const [limit, setLimit] = useState(FIRST_ROWS);
  useKeptFocus(container, findFocusTarget);
  const { columns, rows } = model;
  return (
    <>
      <div className="jp-ToJobResults-scroller" tabIndex={0}>
        <table className="jp-ToJobResults-matrix">
          <caption className="jp-ToJobResults-hidden">
            {trans.__('Results of the runs of %1', model.group)}
          </caption>
          <Head model={model} columns={columns} {...services} />
          <tbody>
            {rows.slice(0, limit).map(row => (
              <MatrixRow
                key={String(row.job)}
                model={model}
                row={row}
                columns={columns}
                {...services}
              />
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > limit && (
        <button
          className="jp-mod-styled jp-mod-reject jp-ToJobResults-more"
          onClick={() => setLimit(limit + 5 * FIRST_ROWS)}
        >
          {trans.__('Show More of %1 Runs', rows.length)}
        </button>
      )}
    </>
  );
}

type HeadProps = Props & { columns: readonly ResultColumn[] };

function Head({ model, columns, ...services }: HeadProps): ReactElement {
  const { trans } = services;
  const numbers = new Set(model.numberColumns.map(({ name }) => name));
  return (
    <thead>
      <tr>
        <Heading model={model} column={JOB} {...services} />
        <Heading model={model} column={STATE} {...services} />
        {columns.map(column => (
          <Heading
            key={column.name}
            model={model}
            column={column}
            isNumber={numbers.has(column.name)}
            {...services}
          />
        ))}
        <th scope="col" className="jp-mod-actions">
          <span className="jp-ToJobResults-hidden">{trans.__('Actions')}</span>
        </th>
      </tr>
    </thead>
  );
}

const JOB: ResultColumn = {
  name: 'job',
  field: 'job',
  kind: 'job',
  differs: true,
  pictures: false
};
const STATE: ResultColumn = { ...JOB, name: 'state', field: 'state' };

/** A column's head, which sorts by the column. */
function Heading(
  props: Props & { column: ResultColumn; isNumber?: boolean }
): ReactElement {
  const { model, column, isNumber, trans } = props;
  const { sorting } = model;
  const isSorted = sorting?.column === column.name;
  const Caret = sorting?.isDescending
    ? caretDownEmptyThinIcon
    : caretUpEmptyThinIcon;
  const title =
    column === JOB
      ? trans.__('Job')
      : column === STATE
        ? trans.__('Status')
        : columnTitle(column, trans);
  return (
    <th
      scope="col"
      className={isNumber ? 'jp-mod-number' : undefined}
      aria-sort={
        !isSorted
          ? undefined
          : sorting?.isDescending
            ? 'descending'
            : 'ascending'
      }
    >
      <button
        title={trans.__('Sort by %1', title)}
        onClick={() => model.sortBy(column.name)}
      >
        {title}
        <span className="jp-ToJobResults-caret" aria-hidden="true">
          {isSorted && <Caret.react tag="span" />}
        </span>
      </button>
    </th>
  );
}

type RowProps = Props & { row: Row; columns: readonly ResultColumn[] };

function MatrixRow(props: RowProps): ReactElement {
  const { model, row, columns, trans } = props;
  const name = String(row.job);
  const isBest = name === model.bestJob;
  const job = model.jobs.get(name);
  return (
    <tr
      className={`jp-mod-${job?.state ?? String(row.state)}${isBest ? ' jp-mod-best' : ''}`}
      data-job={name}
    >
      <th scope="row">
        <JobName commands={props.commands} name={name} />
        {isBest && (
          <span className="jp-ToJobResults-best">{trans.__('★ Best')}</span>
        )}
      </th>
      <td title={(job && noteText(job, trans)) ?? undefined}>
        {job === undefined ? (
          String(row.state)
        ) : (
          <span className="jp-ToJobResults-state">
            <StateIcon state={job.state} />
            {stateText(job, trans)}
          </span>
        )}
      </td>
      {columns.map(column => (
        <Cell key={column.name} {...props} column={column} name={name} />
      ))}
      <td className="jp-mod-actions">
        <RowActions {...props} name={name} />
      </td>
    </tr>
  );
}

type CellProps = RowProps & { column: ResultColumn; name: string };

function Cell(props: CellProps): ReactElement {
  const { row, column, name, pictures, trans } = props;
  const value = valueOf(row, column.name);
  const isPicture =
    column.pictures && typeof value === 'string' && value.startsWith('image/');
  return (
    <td className={typeof value === 'number' ? 'jp-mod-number' : undefined}>
      {isPicture ? (
        <Picture
          store={pictures}
          job={name}
          metric={column.field}
          trans={trans}
        />
      ) : (
        valueText(column, value, trans)
      )}
    </td>
  );
}

function RowActions(props: RowProps & { name: string }): ReactElement {
  const { commands, name, trans } = props;
  return (
    <button
      className="jp-ToJobResults-actions"
      aria-haspopup="menu"
      aria-label={trans.__('More actions for %1', name)}
      title={trans.__('More actions')}
      onClick={event => openRunMenu(event, name, commands)}
    >
      <ellipsesIcon.react tag="span" aria-hidden="true" />
    </button>
  );
}
