/** The headings of the grid: they sort by a column, and select all rows. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { caretDownIcon, caretUpIcon } from '@jupyterlab/ui-components';
import type { ReactElement } from 'react';

import type { Column } from './columns';
import type { TableModel } from './model';

type HeadProps = { model: TableModel; trans: TranslationBundle };

export function GridHead({ model, trans }: HeadProps): ReactElement {
  const { columns, names, selection } = model;
  const isAll = selection.size > 0 && selection.size === names.length;
  return (
    <div role="rowgroup" className="jp-ToJobTable-head">
      <div role="row" aria-rowindex={1} className="jp-ToJobTable-line">
        <div role="columnheader" className="jp-ToJobTable-check">
          <input
            type="checkbox"
            aria-label={trans.__('Select all shown jobs')}
            title={trans.__('Select all shown jobs')}
            checked={isAll}
            ref={input => {
              if (input !== null) {
                input.indeterminate = selection.size > 0 && !isAll;
              }
            }}
            onChange={() =>
              model.select(each =>
                isAll ? each.clear() : each.selectAll(names)
              )
            }
          />
        </div>
        {columns.map(column => (
          <ColumnHeading
            key={column.id}
            column={column}
            model={model}
            trans={trans}
          />
        ))}
        <div role="columnheader">
          <span className="jp-ToJob-spoken">{trans.__('More actions')}</span>
        </div>
      </div>
    </div>
  );
}

type HeadingProps = HeadProps & { column: Column };

/** The heading of a column, which sorts by it. */
function ColumnHeading({ column, model, trans }: HeadingProps): ReactElement {
  const { sort } = model.state;
  const { id, label, isNumber } = column;
  const order =
    sort?.column !== id
      ? 'none'
      : sort.isDescending
        ? 'descending'
        : 'ascending';
  const Arrow = order === 'descending' ? caretDownIcon : caretUpIcon;
  return (
    <div
      role="columnheader"
      aria-sort={order}
      className={isNumber ? 'jp-mod-number' : undefined}
    >
      <button
        className={`jp-ToJobTable-sort jp-mod-${order}`}
        title={trans.__('Sort by %1', label)}
        onClick={() => model.toggleSort(id)}
      >
        <span>{label}</span>
        <Arrow.react tag="span" aria-hidden="true" />
      </button>
    </div>
  );
}
