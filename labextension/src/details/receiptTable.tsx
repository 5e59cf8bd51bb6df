/** What each cell used: a table, whose figures have bars. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { type ReactElement, useState } from 'react';

import type { CellReceipt } from '../api';
import {
  type ColumnId,
  type ReceiptColumn,
  receiptColumns,
  shares,
  sortedIndices
} from './receipt';

/** How many cells are shown at first. */
const FIRST_ROWS = 30;

type Props = {
  cells: readonly CellReceipt[];
  /** Whether the cell that did not end was stopped by somebody. */
  isCancelled: boolean;
  trans: TranslationBundle;
};

export function ReceiptTable(props: Props): ReactElement {
  const { cells, isCancelled, trans } = props;
  const [sortId, setSortId] = useState<ColumnId | null>(null);
  const [isWhole, setWhole] = useState(false);
  if (cells.length === 0) {
    return <p>{trans.__('No cell has begun yet.')}</p>;
  }
  const columns = receiptColumns(cells, trans);
  const sorting = columns.find(({ id }) => id === sortId) ?? null;
  const indices = sortedIndices(cells, sorting);
  const shown = isWhole ? indices : indices.slice(0, FIRST_ROWS);
  const bars = columns.map(column => shares(cells, column));
  return (
    <>
      <table className="jp-ToJob-cells">
        <TableHead
          columns={columns}
          sortId={sorting?.id ?? null}
          onSort={setSortId}
          trans={trans}
        />
        <tbody>
          {shown.map(index => (
            <CellRow
              key={index}
              cell={cells[index]!}
              columns={columns}
              shares={bars.map(bar => bar[index]!)}
              isCancelled={isCancelled}
              trans={trans}
            />
          ))}
        </tbody>
      </table>
      {shown.length < cells.length && (
        <button
          className="jp-mod-styled jp-mod-reject"
          onClick={() => setWhole(true)}
        >
          {trans.__('Show all %1 cells', cells.length)}
        </button>
      )}
    </>
  );
}

type HeadProps = {
  columns: readonly ReceiptColumn[];
  sortId: ColumnId | null;
  onSort: (id: ColumnId | null) => void;
  trans: TranslationBundle;
};

function TableHead({
  columns,
  sortId,
  onSort,
  trans
}: HeadProps): ReactElement {
  return (
    <thead>
      <tr>
        <th scope="col" aria-sort={sortId === null ? 'ascending' : 'none'}>
          <button onClick={() => onSort(null)}>{trans.__('Cell')}</button>
        </th>
        {columns.map(({ id, label }) => (
          <th
            key={id}
            scope="col"
            aria-sort={id === sortId ? 'descending' : 'none'}
          >
            <button onClick={() => onSort(id)}>{label}</button>
          </th>
        ))}
      </tr>
    </thead>
  );
}

type CellNameProps = Omit<Props, 'cells'> & { cell: CellReceipt };

type CellRowProps = CellNameProps & {
  columns: ReturnType<typeof receiptColumns>;
  shares: readonly ReturnType<typeof shares>[number][];
};

function CellRow({ columns, shares, ...name }: CellRowProps): ReactElement {
  return (
    <tr className={`jp-mod-${name.cell.state}`}>
      <th scope="row">
        <CellName {...name} />
      </th>
      {columns.map((column, place) => (
        <Figure
          key={column.id}
          column={column}
          cell={name.cell}
          share={shares[place]!}
        />
      ))}
    </tr>
  );
}

/** The cell's place among all cells of the notebook that was sent, and its first line. */
function CellName({
  cell: { cell, title, state },
  isCancelled,
  trans
}: CellNameProps): ReactElement {
  const failed = isCancelled ? trans.__('Stopped') : trans.__('Failed');
  return (
    <>
      {cell === null ? trans.__('Parameters') : trans.__('Cell %1', cell + 1)}{' '}
      {state !== 'done' && (
        <strong>{state === 'failed' ? failed : trans.__('Running')}</strong>
      )}
      {cell !== null && <code title={title}>{title}</code>}
    </>
  );
}

type FigureProps = {
  column: ReceiptColumn;
  cell: CellReceipt;
  share: number | null;
};

function Figure({ column, cell, share }: FigureProps): ReactElement {
  return (
    <td>
      {column.text(cell)}
      {share !== null && (
        <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
          <rect className="jp-mod-all" width="100" height="6" />
          <rect width={(100 * share).toFixed(1)} height="6" />
        </svg>
      )}
    </td>
  );
}
