/** The list of jobs: lines, footer and keyboard navigation. */
import { caretDownIcon, caretRightIcon } from '@jupyterlab/ui-components';
import {
  type KeyboardEvent,
  type ReactElement,
  useEffect,
  useMemo,
  useRef,
  useState
} from 'react';

import { formatParameters } from '../jobs/filter';
import type { ListRow, PanelModel } from './model';
import { JobRow, type RowServices } from './row';
import { SweepLine } from './sweepRow';
import { WindowedList } from './windowed';

type Props = RowServices & { model: PanelModel };

export function JobList({ model, ...services }: Props): ReactElement {
  const { rows, jobs, isFiltered } = model;
  const keys = useMemo(() => rows.map(({ key }) => key), [rows]);
  const [activeKey, setActiveKey] = useState('');
  const activeIndex = useActiveIndex(keys, activeKey);
  const container = useRef<HTMLDivElement>(null);
  const onKeyDown = useArrowKeys(container, keys, activeIndex, setActiveKey);
  useRevealedLine(container, model, setActiveKey);
  const onEnd = () => {
    // A filtered list loads more on request only: it might otherwise read 10,000 jobs for one word.
    if (jobs.hasMore && !jobs.isBusy && jobs.error === null && !isFiltered) {
      void jobs.loadMore();
    }
  };
  const render = (index: number) => (
    <ListLine
      {...services}
      model={model}
      row={rows[index]!}
      isActive={index === activeIndex}
    />
  );
  return (
    <div
      className="jp-ToJob-list-of-jobs"
      ref={container}
      onKeyDown={onKeyDown}
      onFocus={({ target }) => {
        const line = target.closest<HTMLElement>('li[data-key]');
        if (line !== null) {
          setActiveKey(line.dataset.key!);
        }
      }}
    >
      {rows.length > 0 && (
        <WindowedList
          label={services.trans.__('Jobs')}
          keys={keys}
          pinnedIndex={activeIndex}
          render={render}
          onEnd={onEnd}
        />
      )}
      <ListFooter model={model} {...services} />
    </div>
  );
}

/**
 * The index of the active line. When that line is removed, the line in its place becomes active.
 */
function useActiveIndex(keys: readonly string[], key: string): number {
  const lastIndex = useRef(0);
  const index = keys.indexOf(key);
  const active =
    index === -1
      ? Math.max(Math.min(lastIndex.current, keys.length - 1), 0)
      : index;
  useEffect(() => {
    lastIndex.current = active;
  }, [active]);
  return active;
}

/** Let arrow keys, Home and End move between lines; Tab moves within one. */
function useArrowKeys(
  container: React.RefObject<HTMLDivElement>,
  keys: readonly string[],
  activeIndex: number,
  setActiveKey: (key: string) => void
): (event: KeyboardEvent) => void {
  const [focusKey, setFocusKey] = useState<string | null>(null);
  useEffect(() => {
    if (focusKey !== null) {
      const line = container.current?.querySelector(
        `li[data-key="${CSS.escape(focusKey)}"]`
      );
      line?.querySelector<HTMLElement>('[data-main]')?.focus();
      line?.scrollIntoView({ block: 'nearest' });
      setFocusKey(null);
    }
  }, [focusKey, container]);
  return event => {
    const steps: Record<string, number> = {
      ArrowDown: activeIndex + 1,
      ArrowUp: activeIndex - 1,
      Home: 0,
      End: keys.length - 1
    };
    const key = keys[steps[event.key] ?? -1];
    if (key !== undefined) {
      event.preventDefault();
      setActiveKey(key);
      setFocusKey(key);
    }
  };
}

/** Focus the line that the model reveals, once it is rendered: the active line always is. */
function useRevealedLine(
  container: React.RefObject<HTMLDivElement>,
  model: PanelModel,
  setActiveKey: (key: string) => void
): void {
  useEffect(() => {
    const { revealedKey: key } = model;
    if (key === null) {
      return;
    }
    const selector = `li[data-key="${CSS.escape(key)}"]`;
    const line = container.current?.querySelector(selector);
    if (line) {
      model.revealedKey = null;
      line.querySelector<HTMLElement>('[data-main]')?.focus();
      line.scrollIntoView({ block: 'nearest' });
    } else {
      setActiveKey(key);
    }
  });
}

type LineProps = Props & { row: ListRow; isActive: boolean };

function ListLine({
  row,
  model,
  isActive,
  ...services
}: LineProps): ReactElement {
  const { jobs } = model;
  if (row.kind === 'job') {
    const { job } = row;
    const line = (
      <JobRow
        {...services}
        jobs={jobs}
        job={job}
        isActive={isActive}
        difference={formatParameters(job, jobs.getDistinctParameters(job))}
        day={new Date().toDateString()}
      />
    );
    return row.isMember ? <div className="jp-ToJob-member">{line}</div> : line;
  }
  if (row.kind === 'sweep') {
    return (
      <SweepLine
        {...services}
        jobs={jobs}
        row={row}
        isActive={isActive}
        onToggle={() => model.toggleSweep(row.group)}
      />
    );
  }
  const Caret = row.isOpen ? caretDownIcon : caretRightIcon;
  const count = services.trans._n('%1 job', '%1 jobs', row.jobs.length);
  return (
    <button
      className="jp-ToJob-notebook-group"
      data-main
      tabIndex={isActive ? 0 : -1}
      aria-expanded={row.isOpen}
      onClick={() => model.toggleGroup(row.notebook)}
    >
      <Caret.react tag="span" aria-hidden="true" />
      <span>{row.notebook}</span>
      <span className="jp-ToJob-count">{count}</span>
    </button>
  );
}

/** The text below the list, or in its place. */
function ListFooter({ model, trans }: Props): ReactElement | null {
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
          onClick={() => void jobs.loadMore(true)}
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
    <p className="jp-ToJob-said">{trans.__('No job matches.')}</p>
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
