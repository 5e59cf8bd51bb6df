/** The parts that the sections of the details are made of. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { type ReactElement, type ReactNode, useId, useState } from 'react';

import { errorText } from '../ui/errors';
import type { Fact } from './facts';
import type { Resource } from './resource';

type SectionProps = { title: string; children: ReactNode };

/** A section with a heading. */
export function Section({ title, children }: SectionProps): ReactElement {
  const id = useId();
  return (
    <section className="jp-ToJob-section" aria-labelledby={id}>
      <h3 id={id}>{title}</h3>
      {children}
    </section>
  );
}

type FoldedProps = SectionProps & { onOpen: () => void };

/** A section that is closed at first, and loads its content when it is opened. */
export function FoldedSection({
  title,
  onOpen,
  children
}: FoldedProps): ReactElement {
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  return (
    <section className="jp-ToJob-section" aria-labelledby={id}>
      <h3 id={id}>
        <button
          className="jp-ToJob-fold"
          aria-expanded={isOpen}
          onClick={() => {
            setOpen(!isOpen);
            if (!isOpen) {
              onOpen();
            }
          }}
        >
          {title}
        </button>
      </h3>
      {isOpen && children}
    </section>
  );
}

type FactListProps = {
  facts: readonly Fact[];
  onOpen?: (fact: Fact) => void;
};

/** Labels with texts; those that name a file or a job are buttons. */
export function FactList({ facts, onOpen }: FactListProps): ReactElement {
  return (
    <dl className="jp-ToJob-facts">
      {facts.map(fact => {
        const isLink =
          onOpen !== undefined &&
          (fact.job !== undefined || isInside(fact.path));
        return (
          <div key={`${fact.label} ${fact.text}`}>
            <dt>{fact.label}</dt>
            <dd>
              {isLink ? (
                <button className="jp-ToJob-link" onClick={() => onOpen(fact)}>
                  {fact.text}
                </button>
              ) : (
                fact.text
              )}
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

/** Whether this server shows the file of a path: those of other roots begin with `../`. */
export function isInside(path: string | undefined): boolean {
  return path !== undefined && !path.startsWith('../');
}

type LoadedProps<T> = {
  resource: Resource<T>;
  trans: TranslationBundle;
  children: (value: T) => ReactNode;
};

/** What was loaded, or why it was not. */
export function Loaded<T>({
  resource,
  trans,
  children
}: LoadedProps<T>): ReactElement {
  const { value, error, isLoading } = resource;
  return (
    <>
      {error !== null && (
        <p className="jp-ToJob-notice">
          {errorText(error, trans, false)}{' '}
          <button
            className="jp-mod-styled jp-mod-reject"
            onClick={() => void resource.load()}
          >
            {trans.__('Try Again')}
          </button>
        </p>
      )}
      {value === null
        ? isLoading && <p>{trans.__('Loading…')}</p>
        : error === null && children(value)}
    </>
  );
}
