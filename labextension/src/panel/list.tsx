/** The list: its lines, what is said instead of them, and how the keyboard moves in it. */
import { caretDownIcon, caretRightIcon } from '@jupyterlab/ui-components';
import {
  type KeyboardEvent,
  type ReactElement,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState
} from 'react';

import type { PanelModel, Row } from './model';
import { type Desk, JobRow } from './row';
import { Windowed } from './windowed';

type Props = Desk & { model: PanelModel };

/** The lines that the model has. */
export function List({ model, ...desk }: Props): ReactElement {
  const { rows, jobs, isFiltered } = model;
  const keys = useMemo(() => rows.map(({ key }) => key), [rows]);
  const [activeKey, setActive] = useState('');
  const active = useActive(keys, activeKey);
  const place = useRef<HTMLDivElement>(null);
  const onKeyDown = useMover(place, keys, active, setActive);
  const onEnd = useCallback(() => {
    // Who filters asks for more themselves: nobody wants 10,000 jobs to be read for a word.
    if (jobs.hasMore && !jobs.isBusy && jobs.error === null && !isFiltered) {
      void jobs.more();
    }
  }, [jobs, isFiltered]);
  const render = (index: number) => (
    <Line
      {...desk}
      model={model}
      row={rows[index]!}
      isActive={index === active}
    />
  );
  return (
    <div
      className="jp-ToJob-list-of-jobs"
      ref={place}
      onKeyDown={onKeyDown}
      onFocus={({ target }) => {
        const line = target.closest<HTMLElement>('li[data-key]');
        if (line !== null) {
          setActive(line.dataset.key!);
        }
      }}
    >
      {rows.length > 0 && (
        <Windowed
          label={desk.trans.__('Jobs')}
          keys={keys}
          kept={active}
          render={render}
          onEnd={onEnd}
        />
      )}
      <Rest model={model} {...desk} />
    </div>
  );
}

/** The index of the line that the keyboard is at; after that line is gone, of the one in its place. */
function useActive(keys: readonly string[], key: string): number {
  const last = useRef(0);
  const at = keys.indexOf(key);
  const active =
    at === -1 ? Math.max(Math.min(last.current, keys.length - 1), 0) : at;
  useEffect(() => {
    last.current = active;
  }, [active]);
  return active;
}

/** Arrow keys, Home and End move between lines; Tab goes into one. */
function useMover(
  place: React.RefObject<HTMLDivElement>,
  keys: readonly string[],
  active: number,
  setActive: (key: string) => void
): (event: KeyboardEvent) => void {
  const [wanted, setWanted] = useState<string | null>(null);
  useEffect(() => {
    if (wanted !== null) {
      const line = place.current?.querySelector(
        `li[data-key="${CSS.escape(wanted)}"]`
      );
      line?.querySelector<HTMLElement>('[data-main]')?.focus();
      line?.scrollIntoView({ block: 'nearest' });
      setWanted(null);
    }
  }, [wanted, place]);
  return event => {
    const steps: Record<string, number> = {
      ArrowDown: active + 1,
      ArrowUp: active - 1,
      Home: 0,
      End: keys.length - 1
    };
    const key = keys[steps[event.key] ?? -1];
    if (key !== undefined) {
      event.preventDefault();
      setActive(key);
      setWanted(key);
    }
  };
}

type LineProps = Props & { row: Row; isActive: boolean };

function Line({ row, model, isActive, ...desk }: LineProps): ReactElement {
  if (row.kind === 'job') {
    return <JobRow {...desk} job={row.job} isActive={isActive} />;
  }
  const Caret = row.isOpen ? caretDownIcon : caretRightIcon;
  const count = desk.trans._n('%1 job', '%1 jobs', row.jobs.length);
  return (
    <button
      className="jp-ToJob-notebook-group"
      data-main
      tabIndex={isActive ? 0 : -1}
      aria-expanded={row.isOpen}
      onClick={() => model.toggle(row.notebook)}
    >
      <Caret.react tag="span" aria-hidden="true" />
      <span>{row.notebook}</span>
      <span className="jp-ToJob-count">{count}</span>
    </button>
  );
}

/** What is said below the list, or in its place. */
function Rest({ model, trans }: Props): ReactElement | null {
  const { jobs, rows, isFiltered } = model;
  if (rows.length === 0 && !jobs.isLoaded) {
    return jobs.error === null ? (
      <p className="jp-ToJob-said">{trans.__('Asking for the jobs…')}</p>
    ) : null;
  }
  if (isFiltered && jobs.hasMore) {
    return (
      <div className="jp-ToJob-said">
        <p>{trans.__('Searched the newest %1 jobs.', jobs.all.length)}</p>
        <button
          className="jp-mod-styled jp-mod-reject"
          aria-disabled={jobs.isBusy}
          onClick={() => void jobs.more(true)}
        >
          {trans.__('Search Older Jobs')}
        </button>
      </div>
    );
  }
  if (rows.length > 0) {
    return null;
  }
  return isFiltered ? (
    <p className="jp-ToJob-said">{trans.__('No job is like that.')}</p>
  ) : (
    <div className="jp-ToJob-said">
      <p>{trans.__('No jobs yet.')}</p>
      <p>
        {trans.__(
          'Open a notebook and click SUBMIT JOB in its toolbar: it runs here as a job, and the executed notebook appears beside it.'
        )}
      </p>
    </div>
  );
}
