/** The keyboard in the grid: one row is active and has the focus; Tab moves within it. */
import {
  type KeyboardEvent,
  type RefObject,
  useCallback,
  useEffect,
  useLayoutEffect,
  useRef,
  useState
} from 'react';

import type { TableModel } from './model';

type GridActions = {
  open: (name: string) => void;
  remove: () => void;
  /** How many rows are visible. */
  pageSize: number;
};

type GridKeys = {
  activeIndex: number;
  setActive: (name: string | null) => void;
  onKeyDown: (event: KeyboardEvent<HTMLElement>) => void;
};

export function useGridKeys(
  scroller: RefObject<HTMLDivElement>,
  model: TableModel,
  { open, remove, pageSize }: GridActions
): GridKeys {
  const { names } = model;
  const [active, setActiveName] = useState('');
  const activeIndex = useActiveIndex(names, active);
  const focusRow = useRowFocus(scroller, names[activeIndex]);
  const setActive = useCallback(
    (name: string | null) => name !== null && setActiveName(name),
    []
  );
  const move = (to: number, isRange: boolean) => {
    const next = names[Math.min(Math.max(to, 0), names.length - 1)]!;
    setActiveName(next);
    focusRow(next);
    if (isRange) {
      model.select(selection => {
        if (selection.size === 0) {
          selection.replace(names[activeIndex]!);
        }
        selection.extend(next, names);
      });
    }
  };
  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    const element = event.target as HTMLElement;
    const name = names[activeIndex];
    if (element.closest('[data-name]') === null || name === undefined) {
      return; // The focus is in the headings.
    }
    const step = stepOf(event.key, activeIndex, names.length, pageSize);
    const action = element.matches('[data-name]')
      ? keyAction(event, model, () => open(name), remove)
      : null;
    if (event.altKey || (step === null && action === null)) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    if (step === null) {
      action?.(name);
    } else {
      move(step, event.shiftKey);
    }
  };
  return { activeIndex, setActive, onKeyDown };
}

/** The row that a key moves to; null if it moves nowhere. */
function stepOf(
  key: string,
  index: number,
  count: number,
  pageSize: number
): number | null {
  const page = Math.max(pageSize - 2, 1);
  const steps: Record<string, number> = {
    ArrowDown: index + 1,
    ArrowUp: index - 1,
    PageDown: index + page,
    PageUp: index - page,
    Home: 0,
    End: count - 1
  };
  return steps[key] ?? null;
}

/** What a key does to the active row or the selection; null if nothing. */
function keyAction(
  { key, ctrlKey, metaKey }: KeyboardEvent,
  model: TableModel,
  open: () => void,
  remove: () => void
): ((name: string) => void) | null {
  const { selection, names } = model;
  if (key === ' ') {
    return name => model.select(() => selection.toggle(name));
  }
  if (key === 'a' && (ctrlKey || metaKey)) {
    return () => model.select(() => selection.selectAll(names));
  }
  if (key === 'Escape' && selection.size > 0) {
    return () => model.select(() => selection.clear());
  }
  if (key === 'Delete' && selection.size > 0) {
    return remove;
  }
  return key === 'Enter' ? open : null;
}

/** The index of the active row. When that row goes, the row in its place becomes active. */
function useActiveIndex(names: readonly string[], name: string): number {
  const lastIndex = useRef(0);
  const index = names.indexOf(name);
  const active =
    index === -1
      ? Math.max(Math.min(lastIndex.current, names.length - 1), 0)
      : index;
  useEffect(() => {
    lastIndex.current = active;
  }, [active]);
  return active;
}

/** Returns a function that focuses a row once it is rendered, and shows all of it. */
function useRowFocus(
  scroller: RefObject<HTMLDivElement>,
  activeName: string | undefined
): (name: string) => void {
  const [request, setRequest] = useState<{ name: string } | null>(null);
  // Read during render, while the old row still exists: there is no event for its removal.
  const hadFocus = scroller.current?.contains(document.activeElement) ?? false;
  const find = (name = '') =>
    scroller.current?.querySelector<HTMLElement>(
      `[data-name="${CSS.escape(name)}"]`
    );
  useLayoutEffect(() => {
    if (request !== null) {
      const row = find(request.name);
      row?.focus({ preventScroll: true });
      row?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    }
  }, [request]);
  useLayoutEffect(() => {
    if (hadFocus && document.activeElement === document.body) {
      find(activeName)?.focus({ preventScroll: true });
    }
  });
  return useCallback((name: string) => setRequest({ name }), []);
}
