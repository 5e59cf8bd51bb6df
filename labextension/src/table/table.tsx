/** The table of all jobs, in the main area. It is loaded when it is opened. */
import type { Contents } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import { CommandRegistry } from '@lumino/commands';
import type { Message } from '@lumino/messaging';
import { Menu } from '@lumino/widgets';
import type { MouseEvent, ReactElement } from 'react';

import '../../style/table.css';

import { ConnectionNotice } from '../panel/head';
import type { IPreferences } from '../settings/preferences';
import type { IJobs } from '../tokens';
import { useKeptFocus } from '../ui/useKeptFocus';
import { useModel } from '../ui/useModel';
import { JobGrid } from './grid';
import { createJobsActions, type JobsAction, runForJobs } from './manyJobs';
import { TableModel } from './model';
import { SelectionActions, TableFilters } from './toolbar';

export type TableServices = {
  jobs: IJobs;
  preferences: IPreferences;
  commands: CommandRegistry;
  contents: Contents.IManager;
  trans: TranslationBundle;
};

export class JobsTable extends ReactWidget {
  constructor(private readonly _services: TableServices) {
    super();
    this.model = new TableModel(_services.jobs, _services.trans);
    this._actions = createJobsActions(_services);
    this.addClass('jp-ToJobTable');
  }

  readonly model: TableModel;

  override dispose(): void {
    this.model.dispose();
    super.dispose();
  }

  protected override render(): ReactElement {
    return (
      <TableContent
        {...this._services}
        model={this.model}
        actions={this._actions}
        container={this.node}
      />
    );
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this._show();
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    if (this.isVisible) {
      this._show();
    }
  }

  protected override onBeforeHide(msg: Message): void {
    super.onBeforeHide(msg);
    this.model.isVisible = false;
  }

  /** Focus the active row, or else the search field. */
  protected override onActivateRequest(msg: Message): void {
    super.onActivateRequest(msg);
    // React has not rendered yet at the first activation.
    void Promise.resolve(this.renderPromise).then(() => {
      findFocusTarget(this.node)?.focus({ preventScroll: true });
    });
  }

  /** Go on loading; without events, ask what has changed meanwhile. */
  private _show(): void {
    const { jobs } = this._services;
    this.model.isVisible = true;
    if (jobs.feed !== 'live') {
      void jobs.refresh();
    }
  }

  private readonly _actions: readonly JobsAction[];
}

type Props = TableServices & {
  model: TableModel;
  actions: readonly JobsAction[];
  /** The table's node. */
  container: HTMLElement;
};

/** Find the element that gets the focus: the active row, or else the search field. */
function findFocusTarget(table: HTMLElement): HTMLElement | null {
  return (
    table.querySelector<HTMLElement>('[data-name][tabindex="0"]') ??
    table.querySelector('input')
  );
}

function TableContent(props: Props): ReactElement {
  const { model, commands, trans, actions, jobs } = props;
  useModel(model);
  useKeptFocus(props.container, findFocusTarget);
  const run = (action: JobsAction) =>
    void runForJobs(
      action,
      model.selectedJobs,
      text => model.setProgress(text),
      trans
    );
  return (
    <>
      <div className="jp-ToJobTable-top">
        <TableFilters model={model} commands={commands} trans={trans} />
        <SelectionActions {...props} run={run} />
        <ConnectionNotice jobs={jobs} trans={trans} />
      </div>
      <JobGrid
        model={model}
        commands={commands}
        trans={trans}
        openSelectionMenu={event =>
          openSelectionMenu(event, model, actions, run)
        }
        removeSelected={() => run(actions.find(({ id }) => id === 'delete')!)}
      />
      <EmptyNote model={model} trans={trans} />
    </>
  );
}

/** What stands in place of the rows if there are none. */
function EmptyNote({
  model,
  trans
}: Pick<Props, 'model' | 'trans'>): ReactElement | null {
  const { jobs, rows, isFiltered } = model;
  if (rows.length > 0 || (!jobs.isLoaded && jobs.error !== null)) {
    return null;
  }
  const text = !jobs.isLoaded
    ? trans.__('Asking for the jobs…')
    : isFiltered
      ? trans.__('No job matches.')
      : trans.__('No jobs yet.');
  return <p className="jp-ToJob-said">{text}</p>;
}

/** Open a menu of what can be done to the selected jobs. */
function openSelectionMenu(
  event: MouseEvent<HTMLElement>,
  { selectedJobs }: TableModel,
  actions: readonly JobsAction[],
  run: (action: JobsAction) => void
): void {
  event.preventDefault();
  event.stopPropagation();
  const commands = new CommandRegistry();
  const menu = new Menu({ commands });
  for (const action of actions) {
    const count = selectedJobs.filter(action.appliesTo).length;
    commands.addCommand(action.id, {
      label: `${action.label} (${count})`,
      caption: action.caption,
      isEnabled: () => count > 0,
      execute: () => run(action)
    });
    menu.addItem({ command: action.id });
  }
  const opener = document.activeElement as HTMLElement | null;
  menu.aboutToClose.connect(() => {
    opener?.focus();
    requestAnimationFrame(() => menu.dispose()); // it cannot be disposed while it closes
  });
  const { left, bottom } = event.currentTarget.getBoundingClientRect();
  const isPointer = event.clientX !== 0 || event.clientY !== 0;
  menu.open(
    isPointer ? event.clientX : left,
    isPointer ? event.clientY : bottom
  );
}
