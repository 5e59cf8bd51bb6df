/**
 * A windowed list: only lines near the visible part are in the page, so that 10,000 scroll as 50
 * do. Lines may have any height: it is measured once they are rendered, and estimated before.
 */
import {
  type ReactElement,
  type RefObject,
  useLayoutEffect,
  useReducer,
  useRef
} from 'react';

/** The height of a line that was never rendered, in pixels. */
const ESTIMATED_HEIGHT = 72;

/** How far beyond the visible part lines are rendered, in pixels. */
const MARGIN = 600;

type Props = {
  label: string;
  keys: readonly string[];
  /**
   * The line that stays rendered wherever the list is scrolled to, because it may have the focus.
   */
  pinnedIndex: number;
  render: (index: number) => ReactElement;
  /** Called when the end is near. */
  onEnd: () => void;
};

export function WindowedList(props: Props): ReactElement {
  const { keys, pinnedIndex, render, label, onEnd } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const heights = useRef(new Map<string, number>());
  const [, rerender] = useReducer((count: number) => count + 1, 0);
  const { spans, isAtEnd } = planSpans(
    keys,
    pinnedIndex,
    heights.current,
    scroller
  );
  useMeasuredHeights(scroller, heights.current, rerender);
  useLayoutEffect(() => {
    if (isAtEnd) {
      onEnd();
    }
  });
  return (
    <div className="jp-ToJob-scroller" ref={scroller} onScroll={rerender}>
      <ul className="jp-ToJob-jobs" aria-label={label}>
        {spans.map(span =>
          'gap' in span ? (
            <li
              key={`gap ${span.before}`}
              aria-hidden="true"
              style={{ height: span.gap }}
            />
          ) : (
            <li
              key={keys[span.index]}
              data-key={keys[span.index]}
              aria-setsize={keys.length}
              aria-posinset={span.index + 1}
            >
              {render(span.index)}
            </li>
          )
        )}
      </ul>
    </div>
  );
}

type Span = { index: number } | { gap: number; before: number };

/** The lines to render, with gaps for the others. */
function planSpans(
  keys: readonly string[],
  pinnedIndex: number,
  heights: ReadonlyMap<string, number>,
  { current }: RefObject<HTMLDivElement>
): { spans: Span[]; isAtEnd: boolean } {
  const top = (current?.scrollTop ?? 0) - MARGIN;
  const bottom = top + (current?.clientHeight || 800) + 2 * MARGIN;
  const spans: Span[] = [];
  let offset = 0;
  let gap = 0;
  keys.forEach((key, index) => {
    const height = heights.get(key) ?? ESTIMATED_HEIGHT;
    if ((offset + height > top && offset < bottom) || index === pinnedIndex) {
      if (gap > 0) {
        spans.push({ gap, before: index });
      }
      gap = 0;
      spans.push({ index });
    } else {
      gap += height;
    }
    offset += height;
  });
  if (gap > 0) {
    spans.push({ gap, before: keys.length });
  }
  return { spans, isAtEnd: offset < bottom };
}

/** Measure the rendered lines, and render again if a height changed. */
function useMeasuredHeights(
  scroller: RefObject<HTMLDivElement>,
  heights: Map<string, number>,
  rerender: () => void
): void {
  useLayoutEffect(() => {
    let isChanged = false;
    scroller.current
      ?.querySelectorAll<HTMLElement>('li[data-key]')
      .forEach(({ dataset, offsetHeight }) => {
        if (offsetHeight > 0 && heights.get(dataset.key!) !== offsetHeight) {
          heights.set(dataset.key!, offsetHeight);
          isChanged = true;
        }
      });
    if (isChanged) {
      rerender();
    }
  });
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => {
      heights.clear(); // Another width breaks lines at other places.
      rerender();
    });
    observer.observe(scroller.current!);
    return () => observer.disconnect();
  }, [scroller, heights, rerender]);
}
