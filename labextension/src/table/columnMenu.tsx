/** The list of columns to choose from. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { caretDownIcon } from '@jupyterlab/ui-components';
import {
  type FocusEvent,
  type ReactElement,
  useEffect,
  useRef,
  useState
} from 'react';

import { findColumn, listValueColumns } from './columns';
import type { TableModel } from './model';

type Props = { model: TableModel; trans: TranslationBundle };

export function ColumnMenu({ model, trans }: Props): ReactElement {
  const [isOpen, setIsOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const container = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const close = ({ target }: PointerEvent) => {
      if (!container.current?.contains(target as Node)) {
        setIsOpen(false);
      }
    };
    document.addEventListener('pointerdown', close);
    return () => document.removeEventListener('pointerdown', close);
  }, []);
  const onBlur = ({ relatedTarget }: FocusEvent) => {
    if (relatedTarget !== null && !container.current?.contains(relatedTarget)) {
      setIsOpen(false);
    }
  };
  return (
    <div
      className="jp-ToJobTable-columns"
      ref={container}
      onBlur={onBlur}
      onKeyDown={event => {
        if (event.key === 'Escape' && isOpen) {
          event.stopPropagation();
          setIsOpen(false);
          button.current?.focus();
        }
      }}
    >
      <button
        ref={button}
        aria-expanded={isOpen}
        title={trans.__('Choose the columns')}
        onClick={() => setIsOpen(!isOpen)}
      >
        {trans.__('Columns')}
        <caretDownIcon.react tag="span" aria-hidden="true" />
      </button>
      {isOpen && <ColumnList model={model} trans={trans} />}
    </div>
  );
}

function ColumnList({ model, trans }: Props): ReactElement {
  const found = listValueColumns(model.jobs.all);
  const shownOf = (prefix: string) =>
    model.columnIds.filter(id => id.startsWith(prefix));
  const union = (ids: string[], prefix: string) => [
    ...new Set([...ids, ...shownOf(prefix)])
  ];
  const parts: [label: string, ids: string[]][] = [
    [trans.__('Metrics'), union(found.metrics, 'metric.')],
    [trans.__('Parameters'), union(found.parameters, 'parameter.')],
    [trans.__('Columns'), model.allColumns.map(({ id }) => id)]
  ];
  return (
    <div
      className="jp-ToJobTable-column-list"
      role="group"
      aria-label={trans.__('Choose the columns')}
      tabIndex={-1}
    >
      {parts.map(
        ([label, ids]) =>
          ids.length > 0 && (
            <fieldset key={label}>
              <legend>{label}</legend>
              {ids.map(id => (
                <label key={id}>
                  <input
                    type="checkbox"
                    checked={model.columnIds.includes(id)}
                    onChange={() => model.toggleColumn(id)}
                  />
                  <span>{findColumn(model.allColumns, id)?.label}</span>
                </label>
              ))}
            </fieldset>
          )
      )}
      <button onClick={() => model.resetColumns()}>
        {trans.__('Reset Columns')}
      </button>
    </div>
  );
}
