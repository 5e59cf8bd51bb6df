/** What is above the grid: search, filters, columns, and the actions on selected jobs. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { HTMLSelect } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReactElement } from 'react';

import type { StateFilter } from '../jobs/filter';
import { searchHint, stateFilters } from '../panel/head';
import { ViewCommandIDs } from '../viewCommands';
import { ColumnMenu } from './columnMenu';
import type { JobsAction } from './manyJobs';
import type { TableModel } from './model';

type Props = { model: TableModel; trans: TranslationBundle };

type FiltersProps = Props & { commands: CommandRegistry };

export function TableFilters(props: FiltersProps): ReactElement {
  const { model, commands, trans } = props;
  const { state, query, notebook, group } = model.state;
  const { notebooks, groups } = model.choices;
  return (
    <div className="jp-ToJobTable-filters" role="search">
      <input
        type="search"
        className="jp-mod-styled"
        aria-label={trans.__('Search jobs')}
        placeholder={trans.__('Search…')}
        title={searchHint(trans)}
        value={query}
        onChange={({ target }) => model.set({ query: target.value })}
      />
      <Choice
        label={trans.__('Which jobs')}
        value={state}
        options={Object.entries(stateFilters(trans))}
        choose={value => model.set({ state: value as StateFilter })}
      />
      <Choice
        label={trans.__('Which notebook')}
        value={notebook ?? ''}
        options={[['', trans.__('All notebooks')], ...named(notebooks)]}
        choose={value => model.set({ notebook: value || null })}
      />
      {(groups.length > 0 || group) && (
        <Choice
          label={trans.__('Which group')}
          value={group ?? ''}
          options={[['', trans.__('All groups')], ...named(groups)]}
          choose={value => model.set({ group: value || null })}
        />
      )}
      <ColumnMenu model={model} trans={trans} />
      {commands.hasCommand(ViewCommandIDs.cleanUp) && (
        <button
          title={commands.caption(ViewCommandIDs.cleanUp)}
          onClick={() => void commands.execute(ViewCommandIDs.cleanUp)}
        >
          {trans.__('Clean Up Results…')}
        </button>
      )}
    </div>
  );
}

function named(names: readonly string[]): [string, string][] {
  return names.map(name => [name, name]);
}

type ChoiceProps = {
  label: string;
  value: string;
  options: readonly [value: string, label: string][];
  choose: (value: string) => void;
};

function Choice({ label, value, options, choose }: ChoiceProps): ReactElement {
  // A filter from before a reload may be about jobs that are not loaded yet.
  const isKnown = options.some(([each]) => each === value);
  const shown = isKnown ? options : [...options, [value, value] as const];
  return (
    <HTMLSelect
      className="jp-ToJob-filter"
      aria-label={label}
      value={value}
      onChange={({ target }) => choose(target.value)}
    >
      {shown.map(([each, text]) => (
        <option key={each} value={each}>
          {text}
        </option>
      ))}
    </HTMLSelect>
  );
}

type ActionsProps = Props & {
  commands: CommandRegistry;
  actions: readonly JobsAction[];
  run: (action: JobsAction) => void;
};

/** The actions are always there, so that nothing moves when a row is selected. */
export function SelectionActions(props: ActionsProps): ReactElement {
  const { model, commands, actions, run, trans } = props;
  const { selectedJobs } = model;
  const group = commonGroup(model);
  return (
    <div
      className="jp-ToJobTable-actions"
      role="group"
      aria-label={trans.__('Selected jobs')}
    >
      {actions.map(action => (
        <ActionButton
          key={action.id}
          action={action}
          count={selectedJobs.filter(action.appliesTo).length}
          run={run}
        />
      ))}
      {commands.hasCommand(ViewCommandIDs.results) && (
        <button
          aria-disabled={group === null}
          title={
            group === null
              ? trans.__('Select jobs of one group to compare their results')
              : trans.__('Compare the results of a group of jobs')
          }
          onClick={() => {
            if (group !== null) {
              void commands.execute(ViewCommandIDs.results, { group });
            }
          }}
        >
          {trans.__('Compare Results')}
        </button>
      )}
      <TableCounts model={model} trans={trans} />
    </div>
  );
}

type ButtonProps = Pick<ActionsProps, 'run'> & {
  action: JobsAction;
  /** Selected jobs to which it applies. */
  count: number;
};

function ActionButton({ action, count, run }: ButtonProps): ReactElement {
  return (
    <button
      aria-disabled={count === 0}
      title={action.caption}
      onClick={() => {
        if (count > 0) {
          run(action);
        }
      }}
    >
      {count > 0 ? `${action.label} (${count})` : action.label}
    </button>
  );
}

/** The group of all selected jobs; null if they have none in common. */
function commonGroup({ selectedJobs }: TableModel): string | null {
  const groups = new Set(selectedJobs.map(({ group }) => group));
  const [group = null] = groups;
  return groups.size === 1 ? group : null;
}

function TableCounts({ model, trans }: Props): ReactElement {
  const { jobs, rows, selection, isFiltered, progress } = model;
  const count = (value: number) => value.toLocaleString();
  const total = jobs.all.length;
  const counts = isFiltered
    ? trans.__('%1 of %2 jobs', count(rows.length), count(total))
    : trans._n('%2 job', '%2 jobs', total, count(total));
  return (
    <p className="jp-ToJobTable-counts">
      <span>{counts}</span>
      {jobs.hasMore && !model.mustAskForMore && jobs.error === null && (
        <span>{trans.__('Loading older jobs…')}</span>
      )}
      {model.mustAskForMore && (
        <button
          aria-disabled={jobs.isBusy}
          onClick={() => void jobs.loadMore(true)}
        >
          {trans.__('Load Older Jobs')}
        </button>
      )}
      <span role="status">
        {progress ||
          (selection.size > 0 &&
            trans._n(
              '%2 selected',
              '%2 selected',
              selection.size,
              count(selection.size)
            ))}
      </span>
    </p>
  );
}
