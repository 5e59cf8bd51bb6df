/** Says which run is the best one, by what, and leads on from it: to another run, or the notebook. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { HTMLSelect } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReactElement } from 'react';

import { CommandIDs } from '../jobCommands';
import { USE_PARAMETERS } from '../submit/useParameters';
import { columnTitle, valueOf, valueText } from './columns';
import { JobName } from './jobName';
import type { Best, ResultsModel } from './model';

type Props = {
  model: ResultsModel;
  commands: CommandRegistry;
  trans: TranslationBundle;
};

export function BestRun(props: Props): ReactElement | null {
  const { model, commands, trans } = props;
  const { best, bestJob, outcomeColumns } = model;
  if (outcomeColumns.length === 0) {
    return null;
  }
  const setBest = (changes: Partial<Best>) =>
    model.set({ best: { column: '', goal: 'max', ...best, ...changes } });
  return (
    <div className="jp-ToJobResults-controls">
      <label>
        {trans.__('The best run has the')}{' '}
        <HTMLSelect
          value={best?.goal ?? 'max'}
          onChange={({ target }) =>
            setBest({ goal: target.value as Best['goal'] })
          }
        >
          <option value="max">{trans.__('largest')}</option>
          <option value="min">{trans.__('smallest')}</option>
        </HTMLSelect>
      </label>
      <HTMLSelect
        aria-label={trans.__('By which value a run is the best')}
        value={best?.column ?? ''}
        onChange={({ target }) => setBest({ column: target.value })}
      >
        {best === null && <option value="">—</option>}
        {outcomeColumns.map(column => (
          <option key={column.name} value={column.name}>
            {columnTitle(column, trans)}
          </option>
        ))}
      </HTMLSelect>
      {bestJob !== null && (
        <>
          <span>
            <span aria-hidden="true">★ </span>
            <JobName commands={commands} name={bestJob} />{' '}
            <strong>{bestText(props)}</strong>
          </span>
          <FromHere {...props} name={bestJob} />
        </>
      )}
    </div>
  );
}

/** The value that makes the best run the best one. */
function bestText({ model, trans }: Props): string {
  const { best, bestJob, outcomeColumns, rows } = model;
  const column = outcomeColumns.find(({ name }) => name === best?.column);
  const row = rows.find(({ job }) => job === bestJob);
  return column === undefined || row === undefined
    ? ''
    : valueText(column, valueOf(row, column.name), trans);
}

/** What one goes on with after the best run was found. */
function FromHere(props: Props & { name: string }): ReactElement {
  const { commands, name } = props;
  return (
    <>
      {[CommandIDs.rerunWith, USE_PARAMETERS]
        .filter(id => commands.isVisible(id, { name }))
        .map(id => (
          <button
            key={id}
            className="jp-mod-styled jp-mod-reject"
            title={commands.caption(id, { name })}
            onClick={() => void commands.execute(id, { name })}
          >
            {commands.label(id, { name })}
          </button>
        ))}
    </>
  );
}
