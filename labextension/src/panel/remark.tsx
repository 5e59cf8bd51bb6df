/** A note in a job's line: folded after four lines, with a button to read all of it. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { type ReactElement, useLayoutEffect, useRef, useState } from 'react';

type Props = {
  text: string;
  /** The job's name. */
  name: string;
  tabIndex: number;
  trans: TranslationBundle;
};

export function Remark({ text, name, tabIndex, trans }: Props): ReactElement {
  const paragraph = useRef<HTMLParagraphElement>(null);
  const [isOpen, setIsOpen] = useState(false);
  const [isCut, setIsCut] = useState(false);
  useLayoutEffect(() => {
    const { current } = paragraph;
    const measure = () => {
      if (!isOpen && current !== null) {
        setIsCut(current.scrollHeight > current.clientHeight);
      }
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(current!);
    return () => observer.disconnect();
  }, [text, isOpen]);
  return (
    <>
      <p
        className={`jp-ToJob-remark${isOpen ? ' jp-mod-open' : ''}`}
        ref={paragraph}
      >
        {text}
      </p>
      {isCut && (
        <button
          className="jp-ToJob-unfold"
          tabIndex={tabIndex}
          aria-expanded={isOpen}
          aria-label={
            isOpen
              ? trans.__('Show less of what %1 says', name)
              : trans.__('Show all of what %1 says', name)
          }
          onClick={() => setIsOpen(!isOpen)}
        >
          {isOpen ? trans.__('Show Less') : trans.__('Show All')}
        </button>
      )}
    </>
  );
}
