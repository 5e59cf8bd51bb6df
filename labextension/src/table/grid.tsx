/**
 * The grid of jobs. Only rows near the visible part are in the page. All rows have the same height,
 * so that the place of each is known without measuring it.
 */
import {
  type MouseEvent,
  type ReactElement,
  type RefObject,
  useCallback,
  useLayoutEffect,
  useReducer,
  useRef
} from 'react';

import { mainCommandOf } from '../jobCommands';
import type { Job } from '../jobs/job';
import { openJobMenu } from '../panel/menu';
import type { Column } from './columns';
import { GridHead } from './gridHead';
import { useGridKeys } from './keys';
import type { TableModel } from './model';
import { type RowServices, TableRow } from './rows';

/** How many rows are rendered beyond each end of the visible part. */
const MARGIN = 5;

/** The height of a row before it was measured, in pixels. */
const ESTIMATED_HEIGHT = 30;

type Props = RowServices & {
  model: TableModel;
  /** Open the menu of the selected jobs. */
  openSelectionMenu: (event: MouseEvent<HTMLElement>) => void;
  removeSelected: () => void;
};

export function JobGrid(props: Props): ReactElement {
  const { model, commands, trans } = props;
  const { rows, columns } = model;
  const scroller = useRef<HTMLDivElement>(null);
  const view = useVisiblePart(scroller);
  const open = useCallback(
    (name: string) => {
      const job = model.jobs.get(name);
      if (job !== undefined) {
        void commands.execute(mainCommandOf(job, commands), { name });
      }
    },
    [model, commands]
  );
  const { activeIndex, setActive, onKeyDown } = useGridKeys(scroller, model, {
    open,
    remove: props.removeSelected,
    pageSize: view.count
  });
  return (
    <div
      className="jp-ToJobTable-scroller"
      ref={scroller}
      onScroll={view.update}
    >
      <div
        role="grid"
        aria-label={trans.__('Jobs')}
        aria-multiselectable="true"
        aria-rowcount={rows.length + 1}
        aria-colcount={columns.length + 2}
        className="jp-ToJobTable-grid"
        style={layoutOf(columns)}
        onKeyDown={onKeyDown}
      >
        <GridHead model={model} trans={trans} />
        <GridBody
          {...props}
          shown={listRendered(view, rows.length, activeIndex)}
          activeIndex={activeIndex}
          setActive={setActive}
          open={open}
        />
      </div>
    </div>
  );
}

type BodyProps = Props & {
  /** The indices of the rows that are rendered. */
  shown: readonly number[];
  activeIndex: number;
  setActive: (name: string | null) => void;
  open: (name: string) => void;
};

function GridBody(props: BodyProps): ReactElement {
  const { model, commands, trans, shown, activeIndex, setActive, open } = props;
  const { rows, columns } = model;
  const { onClick, onMenu, onToggle } = useRowHandlers(props);
  return (
    <div
      role="rowgroup"
      className="jp-ToJobTable-body"
      style={{ height: `calc(${rows.length} * var(--jp-ToJobTable-line))` }}
      onMouseDown={focusWithoutSelectingText}
      onClick={onClick}
      onDoubleClick={({ target }) => {
        const name = nameOf(target);
        if (name !== null && !isControl(target)) {
          open(name);
        }
      }}
      onFocus={({ target }) => setActive(nameOf(target))}
    >
      {shown.map(index => {
        const job = rows[index]!;
        return (
          <TableRow
            key={job.name}
            commands={commands}
            trans={trans}
            job={job}
            index={index}
            columns={columns}
            isActive={index === activeIndex}
            isSelected={model.selection.has(job.name)}
            texts={columns.map(column => column.text(job)).join('\n')}
            onMenu={onMenu}
            onToggle={onToggle}
          />
        );
      })}
    </div>
  );
}

/** The layout of a row: a checkbox, the columns, and a button for the menu. */
function layoutOf(columns: readonly Column[]): object {
  const [checkWidth, menuWidth] = [2.2, 2.6];
  const tracks = columns.map(({ width, grow }) =>
    grow === undefined ? `${width}em` : `minmax(${width}em, ${grow}fr)`
  );
  const sum = columns.reduce((total, { width }) => total + width, 0);
  return {
    '--jp-ToJobTable-columns': `${checkWidth}em ${tracks.join(' ')} ${menuWidth}em`,
    minWidth: `${sum + checkWidth + menuWidth}em`
  };
}

/** The indices of the rows to render: those near the visible part, and the active one. */
function listRendered(
  { first, count }: { first: number; count: number },
  total: number,
  activeIndex: number
): number[] {
  const from = Math.max(first - MARGIN, 0);
  const length = Math.min(count + 2 * MARGIN, Math.max(total - from, 0));
  const indices = Array.from({ length }, (_, index) => from + index);
  // The active row may have the focus.
  return total === 0 || indices.includes(activeIndex)
    ? indices
    : [...indices, activeIndex];
}

/** The job whose row an element is in; null if it is in none. */
function nameOf(element: EventTarget): string | null {
  const row = (element as HTMLElement).closest<HTMLElement>('[data-name]');
  return row?.dataset.name ?? null;
}

/** Whether an event is about a control in a row, which has a handler of its own. */
function isControl(element: EventTarget): boolean {
  return (element as HTMLElement).closest('button, input') !== null;
}

/** With Shift a press selects rows, not the text between them. */
function focusWithoutSelectingText(event: MouseEvent<HTMLElement>): void {
  const target = event.target as HTMLElement;
  if (event.shiftKey && !isControl(target)) {
    event.preventDefault();
    target.closest<HTMLElement>('[data-name]')?.focus();
  }
}

/** Handlers that stay the same, so that a row renders only if it changes. */
function useRowHandlers({
  model,
  commands,
  openSelectionMenu
}: Pick<Props, 'model' | 'commands' | 'openSelectionMenu'>) {
  const openMenu = useRef(openSelectionMenu);
  openMenu.current = openSelectionMenu;
  const onClick = useCallback(
    (event: MouseEvent<HTMLElement>) => {
      const target = event.target as HTMLElement;
      const name = nameOf(target);
      if (name === null || isControl(target)) {
        return;
      }
      const isBesideBox = target.closest('.jp-ToJobTable-check') !== null;
      model.select(selection => {
        if (event.shiftKey) {
          selection.extend(name, model.names);
        } else if (event.ctrlKey || event.metaKey || isBesideBox) {
          selection.toggle(name);
        } else {
          selection.replace(name);
        }
      });
    },
    [model]
  );
  const onToggle = useCallback(
    (name: string, isRange: boolean) =>
      model.select(selection =>
        isRange ? selection.extend(name, model.names) : selection.toggle(name)
      ),
    [model]
  );
  const onMenu = useCallback(
    (event: MouseEvent<HTMLElement>, job: Job) => {
      if (model.selection.size > 1 && model.selection.has(job.name)) {
        openMenu.current(event);
      } else {
        openJobMenu(event, job, { commands });
      }
    },
    [model, commands]
  );
  return { onClick, onToggle, onMenu };
}

/** The first visible row and how many fit, kept up to date by `update` and when the size changes. */
function useVisiblePart(scroller: RefObject<HTMLDivElement>): {
  first: number;
  count: number;
  update: () => void;
} {
  const height = useRef(ESTIMATED_HEIGHT);
  const [, update] = useReducer((count: number) => count + 1, 0);
  useLayoutEffect(() => {
    const measure = () => {
      const head = scroller.current!.querySelector('.jp-ToJobTable-line');
      height.current = head?.getBoundingClientRect().height || ESTIMATED_HEIGHT;
      update();
    };
    const observer = new ResizeObserver(measure);
    observer.observe(scroller.current!);
    return () => observer.disconnect();
  }, [scroller]);
  const top = scroller.current?.scrollTop ?? 0;
  const visible = scroller.current?.clientHeight ?? 0;
  return {
    first: Math.floor(top / height.current),
    count: Math.ceil(visible / height.current),
    update
  };
}
