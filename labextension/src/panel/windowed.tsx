/**
 * A list of which only what is in sight is in the page, so that 10,000 lines scroll as 50 do. Lines
 * may be of any height: what was in sight once is measured, the rest is guessed.
 */
import {
  type ReactElement,
  type RefObject,
  useCallback,
  useLayoutEffect,
  useReducer,
  useRef
} from 'react';

/** What a line is taken to be high before it was in sight, in pixels. */
const ESTIMATED_HEIGHT = 72;

/** How far beyond what is in sight lines are kept ready, in pixels. */
const MARGIN = 600;

type Props = {
  label: string;
  keys: readonly string[];
  /** The line that stays in the page wherever it is scrolled to: it may have the focus. */
  pinnedIndex: number;
  render: (index: number) => ReactElement;
  /** Called when the end comes near. */
  onEnd: () => void;
};

/** Shows lines by their keys. */
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
              role="presentation"
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

/** Which lines are to be in the page, and how much room the others take. */
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

/** Keep the heights of the lines that are in the page, and render again if one was another. */
function useMeasuredHeights(
  scroller: RefObject<HTMLDivElement>,
  heights: Map<string, number>,
  rerender: () => void
): void {
  const measure = useCallback(() => {
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
  }, [scroller, heights, rerender]);
  useLayoutEffect(measure);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => {
      heights.clear(); // Another width breaks lines elsewhere.
      rerender();
    });
    observer.observe(scroller.current!);
    return () => observer.disconnect();
  }, [scroller, heights, rerender]);
}
