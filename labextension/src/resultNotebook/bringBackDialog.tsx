/** Shows what is copied into the source and what is left out, and asks whether to do so. */
import { Dialog, ReactWidget } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReactElement } from 'react';

import { isToCopy, leftOutText } from './bringBack';
import { diffLines } from './lineDiff';
import type { Match } from './matchCells';
import type { Provenance } from './provenance';

type Props = {
  matches: readonly Match[];
  provenance: Provenance;
  trans: TranslationBundle;
};

/** Ask; resolves to whether the outputs are to be copied. */
export async function confirmCopy(props: Props): Promise<boolean> {
  const { matches, trans } = props;
  const count = matches.filter(isToCopy).length;
  const body = ReactWidget.create(<BringBack {...props} />);
  body.addClass('jp-ToJob-bringBack');
  const title = trans.__('Bring Outputs Back');
  const dialog = new Dialog({
    title,
    body,
    buttons:
      count === 0
        ? [Dialog.cancelButton({ label: trans.__('Close') })]
        : [
            Dialog.cancelButton({ label: trans.__('Cancel') }),
            Dialog.okButton({
              label: trans._n(
                'Copy Outputs of %1 Cell',
                'Copy Outputs of %1 Cells',
                count
              )
            })
          ]
  });
  dialog.node.setAttribute('aria-label', title);
  const { button } = await dialog.launch();
  return button.accept;
}

function BringBack({ matches, provenance, trans }: Props): ReactElement {
  const { job, notebook, parameters } = provenance;
  const values = Object.entries(parameters).map(
    ([name, value]) => `${name} = ${JSON.stringify(value)}`
  );
  const hasCopies = matches.some(isToCopy);
  return (
    <>
      <p>
        {hasCopies
          ? trans.__(
              'Outputs of %1 are copied into %2 where the code is the same. One undo takes the outputs back.',
              job,
              notebook
            )
          : trans.__(
              'There is nothing to copy: no cell of %2 ran in %1 with the same code and other outputs.',
              job,
              notebook
            )}
      </p>
      {values.length > 0 && (
        <p>{trans.__('It ran with %1.', values.join(', '))}</p>
      )}
      <p>{leftOutText(matches, trans)}</p>
      <ul aria-label={trans.__('Cells')}>
        {matches.map(match => (
          <CellItem key={match.source.index} match={match} trans={trans} />
        ))}
      </ul>
    </>
  );
}

function CellItem({
  match,
  trans
}: {
  match: Match;
  trans: TranslationBundle;
}): ReactElement {
  const { source, result, kind } = match;
  const [firstLine] = source.code.split('\n');
  return (
    <li className={isToCopy(match) ? 'jp-mod-copied' : ''}>
      <code>{firstLine}</code> <span>{statusOf(match, trans)}</span>
      {kind === 'changed' && (
        <details>
          <summary>{trans.__('Difference')}</summary>
          <pre
            tabIndex={0}
            aria-label={trans.__('What ran (-), and what is there now (+)')}
          >
            {diffLines(result!.code, source.code).map((line, index) => (
              <span key={index} data-kind={line.kind}>
                {`${line.kind} ${line.text}\n`}
              </span>
            ))}
          </pre>
        </details>
      )}
    </li>
  );
}

function statusOf(match: Match, trans: TranslationBundle): string {
  switch (match.kind) {
    case 'changed':
      return trans.__('left out: other code now');
    case 'unrun':
      return trans.__('left out: it did not run');
    case 'running':
      return trans.__('left out: it runs now');
    case 'new':
      return trans.__('left out: not in the result');
  }
  if (!isToCopy(match)) {
    return trans.__('the same already');
  }
  const { length } = match.result!.outputs;
  return length === 0
    ? trans.__('it had no output')
    : trans._n('%1 output', '%1 outputs', length);
}
