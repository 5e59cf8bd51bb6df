/** The controls above the list: search, filter, grouping; and the notice of connection problems. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { HTMLSelect } from '@jupyterlab/ui-components';
import type { ReactElement } from 'react';

import { connectionProblem } from '../ui/errors';
import type { Filter, PanelModel } from './model';

type Props = { model: PanelModel; trans: TranslationBundle };

export function ListControls({ model, trans }: Props): ReactElement {
  const filters: Record<Filter, string> = {
    all: trans.__('All jobs'),
    waiting: trans.__('Queued'),
    running: trans.__('Running'),
    succeeded: trans.__('Succeeded'),
    failed: trans.__('Failed or cancelled')
  };
  return (
    <div className="jp-ToJob-head" role="search" aria-label={trans.__('Jobs')}>
      <input
        type="search"
        className="jp-mod-styled"
        aria-label={trans.__('Search jobs')}
        placeholder={trans.__('Search…')}
        title={trans.__('Words of name, notebook, flavor, device or reason')}
        value={model.query}
        onChange={({ target }) => model.set({ query: target.value })}
      />
      <HTMLSelect
        className="jp-ToJob-filter"
        aria-label={trans.__('Which jobs')}
        value={model.filter}
        onChange={({ target }) => model.set({ filter: target.value as Filter })}
      >
        {Object.entries(filters).map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </HTMLSelect>
      <label className="jp-ToJob-group">
        <input
          type="checkbox"
          checked={model.isGrouped}
          onChange={({ target }) => model.set({ isGrouped: target.checked })}
        />
        {trans.__('Group by notebook')}
      </label>
    </div>
  );
}

/** The connection problem, with a button to try again. */
export function ConnectionNotice({
  model: { jobs },
  trans
}: Props): ReactElement | null {
  const text = connectionProblem(jobs.error, jobs.feed, trans);
  return text === null ? null : (
    <div className="jp-ToJob-notice" role="alert">
      <p>{text}</p>
      <button
        className="jp-mod-styled jp-mod-reject"
        aria-disabled={jobs.isBusy}
        onClick={() => void jobs.refresh()}
      >
        {jobs.error === null ? trans.__('Refresh') : trans.__('Try Again')}
      </button>
    </div>
  );
}
