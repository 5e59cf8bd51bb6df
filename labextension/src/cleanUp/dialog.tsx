/** Shows the old results that would be removed, and asks. */
import { Dialog, ReactWidget } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { HTMLSelect } from '@jupyterlab/ui-components';
import type { ReactElement } from 'react';

import '../../style/cleanUp.css';

import { errorText } from '../ui/errors';
import { formatBytes, formatMoment } from '../ui/format';
import { useModel } from '../ui/useModel';
import { type Age, AGES, type CleanUpModel } from './model';

type Props = { model: CleanUpModel; trans: TranslationBundle };

/** Ask; resolves to whether the results are to be removed. */
export async function confirmCleanUp(props: Props): Promise<boolean> {
  const { model, trans } = props;
  const body = ReactWidget.create(<CleanUp {...props} />);
  body.addClass('jp-ToJob-cleanUp');
  const title = trans.__('Clean Up Old Results');
  const dialog = new Dialog({
    title,
    body,
    defaultButton: 0, // Enter takes the harmless button.
    focusNodeSelector: 'select',
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.warnButton({ label: trans.__('Remove') })
    ]
  });
  dialog.node.setAttribute('aria-label', title);
  const remove = dialog.node.querySelector<HTMLButtonElement>(
    '.jp-Dialog-footer .jp-mod-warn'
  );
  const update = () => {
    remove!.disabled = !model.results?.length;
  };
  model.changed.connect(update);
  update();
  void model.set({});
  const { button } = await dialog.launch();
  model.changed.disconnect(update);
  return button.accept;
}

function CleanUp({ model, trans }: Props): ReactElement {
  useModel(model);
  const ages: Record<Age, string> = {
    '1d': trans.__('a day'),
    '7d': trans.__('a week'),
    '30d': trans.__('30 days'),
    '90d': trans.__('90 days')
  };
  return (
    <>
      <p>
        {trans.__(
          'Notebooks that jobs delivered, and the files beside them that their runs created, are removed. The jobs stay in the list, and so does what you changed since.'
        )}
      </p>
      <label>
        {trans.__('Results older than')}
        <HTMLSelect
          value={model.age}
          onChange={({ target }) =>
            void model.set({ age: target.value as Age })
          }
        >
          {AGES.map(age => (
            <option key={age} value={age}>
              {ages[age]}
            </option>
          ))}
        </HTMLSelect>
      </label>
      <label>
        <input
          type="checkbox"
          checked={model.keepsNewest}
          onChange={({ target }) =>
            void model.set({ keepsNewest: target.checked })
          }
        />
        {trans.__('Keep the newest result of each notebook')}
      </label>
      <p role="status">{statusText(model, trans)}</p>
      <ResultList model={model} trans={trans} />
    </>
  );
}

function ResultList({ model, trans }: Props): ReactElement {
  return (
    <ul aria-label={trans.__('Old results')} tabIndex={0}>
      {(model.results ?? []).map(({ path, size, finished }) => (
        <li key={path}>
          <code>{path}</code>{' '}
          <small>
            {formatBytes(size)} · {formatMoment(finished, Date.now())}
          </small>
        </li>
      ))}
    </ul>
  );
}

function statusText(model: CleanUpModel, trans: TranslationBundle): string {
  const { results, size, error } = model;
  if (error !== null) {
    return errorText(error, trans, false);
  }
  if (results === null) {
    return trans.__('Loading…');
  }
  return results.length === 0
    ? trans.__('There are no such results.')
    : trans._n(
        '%1 notebook will be removed, %2:',
        '%1 notebooks will be removed, %2 in all:',
        results.length,
        formatBytes(size)
      );
}
