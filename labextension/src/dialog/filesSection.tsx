/** The section of input files: suggested ones, and those that the user adds. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { type ReactElement, useId, useState } from 'react';

import type { Preflight } from '../api';
import { formatBytes } from '../ui/format';
import type { ModelProps } from './section';
import { Checkbox, Section } from './section';

export function FilesSection({ model }: ModelProps): ReactElement {
  const { files, preflight, trans } = model;
  const count = files.paths.length;
  return (
    <Section
      label={
        count === 0
          ? trans.__('Files to send along')
          : trans.__('Files to send along (%1)', count)
      }
    >
      <Checkbox
        label={trans.__('Isolated: run in a scratch copy')}
        isChecked={files.isIsolated}
        onToggle={isChecked => {
          model.change(() => (files.isIsolated = isChecked));
        }}
        help={
          files.isPartlyIsolated
            ? trans.__(
                'Where it is isolated, the run sees only the files that are sent along.'
              )
            : files.isRunIsolated
              ? trans.__('The run sees only the files that are sent along.')
              : trans.__(
                  'Without it the run works in the notebook’s folder and sees all files there, as the editor does: none need to be sent.'
                )
        }
      />
      <SuggestedFiles model={model} />
      <AddedFiles model={model} />
      <AddFile model={model} />
      <p className="jp-ToJobDialog-help">{sizeText(preflight, trans)}</p>
    </Section>
  );
}

function SuggestedFiles({ model }: ModelProps): ReactElement | null {
  const { files, trans } = model;
  return files.suggestions.length === 0 ? null : (
    <fieldset className="jp-ToJobDialog-list">
      <legend>{trans.__('The notebook seems to need')}</legend>
      {files.suggestions.map(({ path, size: bytes, why }) => (
        <Checkbox
          key={path}
          label={
            <>
              <code>{path}</code> ({formatBytes(bytes)})
            </>
          }
          isChecked={files.includes(path)}
          onToggle={isChecked => {
            model.change(() => files.setIncluded(path, isChecked));
          }}
          help={why}
        />
      ))}
    </fieldset>
  );
}

function AddedFiles({ model }: ModelProps): ReactElement | null {
  const { files, trans } = model;
  return files.userPaths.length === 0 ? null : (
    <ul className="jp-ToJobDialog-list" aria-label={trans.__('Added by you')}>
      {files.userPaths.map(path => (
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

function AddFile({ model }: ModelProps): ReactElement {
  const { files, trans } = model;
  const id = useId();
  const [path, setPath] = useState('');
  const add = () => {
    if (model.sendingKey === null && path.trim() !== '') {
      model.change(() => files.add(path));
      setPath('');
    }
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
          // A click on SEND adds it, too. A window that loses the focus keeps its active element.
          onBlur={({ target }) => target !== document.activeElement && add()}
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

const NO_INPUTS = { inputs: [], input_cap: null, ignored: 0 };

/** Number and size of the inputs, the limit, and what is ignored. */
function sizeText(
  preflight: Preflight | null,
  trans: TranslationBundle
): string {
  const { inputs, input_cap: cap, ignored } = preflight ?? NO_INPUTS;
  const bytes = formatBytes(inputs.reduce((all, input) => all + input.size, 0));
  const sentences = [
    trans._n('%1 file, %2.', '%1 files, %2.', inputs.length, bytes)
  ];
  if (typeof cap === 'number') {
    sentences.push(trans.__('At most %1 may go along.', formatBytes(cap)));
  }
  if (ignored > 0) {
    sentences.push(trans._n('%1 is ignored.', '%1 are ignored.', ignored));
  }
  return sentences.join(' ');
}
