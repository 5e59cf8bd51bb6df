/** What changed in the notebook since it was submitted, cell by cell. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReactElement } from 'react';

import type { CellDifference, Difference } from '../api';

/** How many cells without a change are folded into one line. */
export type DifferenceRow = { unchanged: number } | { cell: CellDifference };

/** The cells that differ, and the numbers of those between them that do not. */
export function differenceRows({ cells }: Difference): DifferenceRow[] {
  const rows: DifferenceRow[] = [];
  for (const cell of cells) {
    const last = rows.at(-1);
    if (cell.kind !== 'same') {
      rows.push({ cell });
    } else if (last !== undefined && 'unchanged' in last) {
      last.unchanged += 1;
    } else {
      rows.push({ unchanged: 1 });
    }
  }
  return rows;
}

type Props = { difference: Difference; trans: TranslationBundle };

export function DifferenceView({ difference, trans }: Props): ReactElement {
  const { cells, notebook } = difference;
  if (cells.every(({ kind }) => kind === 'same')) {
    return <p>{trans.__('%1 is still as it was submitted.', notebook)}</p>;
  }
  return (
    <>
      <p>
        {trans.__(
          '− as it was submitted, + as %1 is saved now. Outputs are not compared.',
          notebook
        )}
      </p>
      {differenceRows(difference).map((row, index) =>
        'unchanged' in row ? (
          <p key={index} className="jp-ToJob-unchanged">
            {trans._n('%1 unchanged cell', '%1 unchanged cells', row.unchanged)}
          </p>
        ) : (
          <ChangedCell key={index} cell={row.cell} trans={trans} />
        )
      )}
    </>
  );
}

type CellProps = { cell: CellDifference; trans: TranslationBundle };

function ChangedCell({ cell, trans }: CellProps): ReactElement {
  const { kind, before, after, lines } = cell;
  const place = (after ?? before ?? 0) + 1;
  const titles = {
    same: '',
    added: trans.__('Cell %1 is new', place),
    removed: trans.__('Cell %1, as it was submitted, was removed', place),
    changed: trans.__('Cell %1 has changed', place)
  };
  const classes: Record<string, string> = {
    '+': 'jp-mod-new',
    '-': 'jp-mod-old'
  };
  return (
    <div className="jp-ToJob-changed-cell">
      <h4>{titles[kind]}</h4>
      <pre tabIndex={0} aria-label={titles[kind]} role="region">
        {lines.map(([mark = ' ', text = ''], index) => (
          <span key={index} className={classes[mark]}>
            {`${mark === '-' ? '−' : mark} ${text}\n`}
          </span>
        ))}
      </pre>
    </div>
  );
}
