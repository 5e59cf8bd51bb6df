/** Files that go along: those that the notebook names, and those that the user adds. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { type ReactElement, useId, useState } from 'react';

import type { Preflight } from '../api';
import { size } from '../ui/format';
import { Section, Tick } from './section';
import type { Shown } from './shown';

/** What goes along, folded away. */
export function Files({ model }: Shown): ReactElement {
  const { files, preflight, trans } = model;
  const count = files.chosen.length;
  return (
    <Section
      label={
        count === 0
          ? trans.__('Files to send along')
          : trans.__('Files to send along (%1)', count)
      }
    >
      <Tick
        label={trans.__('Isolated: run in a scratch copy')}
        isTicked={files.isolated}
        onTick={isTicked => {
          model.change(() => (files.isolated = isTicked));
        }}
        help={
          files.isNeeded
            ? trans.__('The run sees only the files that are sent along.')
            : trans.__(
                'Without it the run works in the notebook’s folder and sees all files there, as the editor does: none need to be sent.'
              )
        }
      />
      <Suggested model={model} />
      <Added model={model} />
      <AddFile model={model} />
      <p className="jp-ToJobDialog-help">{sum(preflight, trans)}</p>
    </Section>
  );
}

function Suggested({ model }: Shown): ReactElement | null {
  const { files, trans } = model;
  return files.suggested.length === 0 ? null : (
    <fieldset className="jp-ToJobDialog-list">
      <legend>{trans.__('The notebook seems to need')}</legend>
      {files.suggested.map(({ path, size: bytes, why }) => (
        <Tick
          key={path}
          label={
            <>
              <code>{path}</code> ({size(bytes)})
            </>
          }
          isTicked={files.takes(path)}
          onTick={isTicked => {
            model.change(() => files.take(path, isTicked));
          }}
          help={why}
        />
      ))}
    </fieldset>
  );
}

function Added({ model }: Shown): ReactElement | null {
  const { files, trans } = model;
  return files.added.length === 0 ? null : (
    <ul className="jp-ToJobDialog-list" aria-label={trans.__('Added by you')}>
      {files.added.map(path => (
        <li key={path}>
          <code>{path}</code>{' '}
          <button
            className="jp-ToJobDialog-link"
            onClick={() => model.change(() => files.remove(path))}
            aria-label={trans.__('Remove %1', path)}
          >
            {trans.__('Remove')}
          </button>
        </li>
      ))}
    </ul>
  );
}

function AddFile({ model }: Shown): ReactElement {
  const { files, trans } = model;
  const id = useId();
  const [path, setPath] = useState('');
  const add = () => {
    model.change(() => files.add(path));
    setPath('');
  };
  return (
    <div className="jp-ToJobDialog-row">
      <label htmlFor={id}>{trans.__('Add a file, folder or pattern')}</label>
      <span className="jp-ToJobDialog-add">
        <input
          id={id}
          className="jp-mod-styled"
          type="text"
          data-enter="own"
          value={path}
          placeholder="data/*.csv"
          spellCheck={false}
          autoComplete="off"
          aria-describedby={`${id}-help`}
          onChange={event => setPath(event.target.value)}
          onKeyDown={event => {
            if (event.key === 'Enter' && !event.nativeEvent.isComposing) {
              add();
            }
          }}
        />
        <button
          className="jp-mod-styled"
          onClick={add}
          aria-disabled={path.trim() === ''}
        >
          {trans.__('Add')}
        </button>
      </span>
      <span id={`${id}-help`} className="jp-ToJobDialog-help">
        {trans.__(
          'From the top of the file browser. What a .jobignore file names stays here.'
        )}
      </span>
    </div>
  );
}

const NOTHING = { inputs: [], input_cap: null, ignored: 0 };

/** How much goes along, of how much, and what is left out of it. */
function sum(preflight: Preflight | null, trans: TranslationBundle): string {
  const { inputs, input_cap: cap, ignored } = preflight ?? NOTHING;
  const bytes = size(inputs.reduce((all, input) => all + input.size, 0));
  const words = [
    trans._n('%1 file, %2.', '%1 files, %2.', inputs.length, bytes)
  ];
  if (typeof cap === 'number') {
    words.push(trans.__('At most %1 may go along.', size(cap)));
  }
  if (ignored > 0) {
    words.push(trans._n('%1 is ignored.', '%1 are ignored.', ignored));
  }
  return words.join(' ');
}
