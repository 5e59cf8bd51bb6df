/** The controls above the list: search, filter, grouping; and the notice of connection problems. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { HTMLSelect, tableRowsIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReactElement } from 'react';

import { CommandIDs } from '../jobCommands';
import type { StateFilter } from '../jobs/filter';
import type { IJobs } from '../tokens';
import { connectionProblem } from '../ui/errors';
import type { PanelModel } from './model';
import { NotifyButton } from './notifyButton';

type Props = { model: PanelModel; trans: TranslationBundle };

/** The filters by state, with their labels. */
export function stateFilters(
  trans: TranslationBundle
): Record<StateFilter, string> {
  return {
    all: trans.__('All jobs'),
    waiting: trans.__('Queued'),
    running: trans.__('Running'),
    succeeded: trans.__('Succeeded'),
    failed: trans.__('Failed'),
    cancelled: trans.__('Cancelled')
  };
}

type HeadingProps = { commands: CommandRegistry; trans: TranslationBundle };

/** The panel's heading, and the buttons for the table and for notifications of the computer. */
export function PanelHeading({ commands, trans }: HeadingProps): ReactElement {
  const { showTable } = CommandIDs;
  return (
    <div className="jp-ToJob-titlebar">
      <h2 className="jp-ToJob-heading">{trans.__('Jobs')}</h2>
      {commands.hasCommand(showTable) && (
        <button
          className="jp-ToJob-action"
          title={commands.caption(showTable)}
          onClick={() => void commands.execute(showTable)}
        >
          <tableRowsIcon.react tag="span" aria-hidden="true" />
          {trans.__('Table')}
        </button>
      )}
      <NotifyButton commands={commands} />
    </div>
  );
}

export function ListControls({ model, trans }: Props): ReactElement {
  return (
    <div className="jp-ToJob-head" role="search" aria-label={trans.__('Jobs')}>
      <input
        type="search"
        className="jp-mod-styled"
        aria-label={trans.__('Search jobs')}
        placeholder={trans.__('Search…')}
        title={searchHint(trans)}
        value={model.query}
        onChange={({ target }) => model.set({ query: target.value })}
      />
      <HTMLSelect
        className="jp-ToJob-filter"
        aria-label={trans.__('Which jobs')}
        value={model.filter}
        onChange={({ target }) =>
          model.set({ filter: target.value as StateFilter })
        }
      >
        {Object.entries(stateFilters(trans)).map(([value, label]) => (
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

/** What a search looks at. */
export function searchHint(trans: TranslationBundle): string {
  return trans.__(
    'Words of name, notebook, flavor, device, group or reason, and parameters such as rate=0.1'
  );
}

type NoticeProps = { jobs: IJobs; trans: TranslationBundle };

/** The connection problem, with a button to try again. */
export function ConnectionNotice({
  jobs,
  trans
}: NoticeProps): ReactElement | null {
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
