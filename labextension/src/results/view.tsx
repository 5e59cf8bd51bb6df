/** The results of a group side by side, in the main area. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReactElement } from 'react';

import { failedJobs, GroupCommandIDs } from '../groupCommands';
import type { IResultsApi } from '../jobs/client';
import type { IJobs } from '../tokens';
import { errorText, showError } from '../ui/errors';
import { GroupProgress } from '../ui/groupProgress';
import { saveFile } from '../ui/saveFile';
import { useKeptFocus } from '../ui/useKeptFocus';
import { useModel } from '../ui/useModel';
import { BestRun } from './bestRun';
import { findFocusTarget, Matrix, type MatrixServices } from './matrix';
import { ResultsModel } from './model';
import { PictureStore } from './pictures';
import { Plot } from './plot';

export type ResultsServices = {
  commands: CommandRegistry;
  jobs: IJobs;
  resultsApi: IResultsApi;
  trans: TranslationBundle;
};

/** Shows the results of one group. */
export class ResultsView extends ReactWidget {
  constructor(
    readonly group: string,
    private readonly _services: ResultsServices
  ) {
    super();
    const { jobs, resultsApi } = _services;
    this.addClass('jp-ToJobResults');
    this._model = new ResultsModel(group, jobs, resultsApi);
    this._pictures = new PictureStore(resultsApi);
  }

  override dispose(): void {
    this._model.dispose();
    this._pictures.dispose();
    super.dispose();
  }

  protected override render(): ReactElement {
    const { commands, resultsApi, trans } = this._services;
    return (
      <Content
        model={this._model}
        commands={commands}
        pictures={this._pictures}
        resultsApi={resultsApi}
        trans={trans}
        container={this.node}
      />
    );
  }

  private readonly _model: ResultsModel;
  private readonly _pictures: PictureStore;
}

type Props = MatrixServices & {
  model: ResultsModel;
  resultsApi: IResultsApi;
};

function Content(props: Props & { container: HTMLElement }): ReactElement {
  const { model, commands, pictures, trans, container } = props;
  useModel(model);
  useKeptFocus(container, findFocusTarget);
  return (
    <>
      <Head {...props} />
      {model.error !== null && <LoadError {...props} />}
      {model.results === null ? (
        model.error === null && (
          <p className="jp-ToJobResults-said">{trans.__('Comparing…')}</p>
        )
      ) : (
        <>
          <BestRun model={model} commands={commands} trans={trans} />
          <Plot model={model} trans={trans} />
          <AllColumns {...props} />
          <Matrix
            model={model}
            commands={commands}
            pictures={pictures}
            trans={trans}
            container={container}
          />
        </>
      )}
    </>
  );
}

function LoadError({ model, trans }: Props): ReactElement {
  return (
    <div className="jp-ToJobResults-said" role="alert">
      <p>{errorText(model.error, trans, false)}</p>
      <button
        className="jp-mod-styled jp-mod-reject"
        onClick={() => void model.refresh()}
      >
        {trans.__('Try Again')}
      </button>
    </div>
  );
}

/** The group, how it stands, and what can be done with all of it. */
function Head(props: Props): ReactElement {
  const { model, commands, resultsApi, trans } = props;
  const { group, members } = model;
  const failed = failedJobs(members).length;
  const command = (id: string, label: string) =>
    commands.isVisible(id, { group }) && (
      <button
        className="jp-mod-styled jp-mod-reject"
        title={commands.caption(id, { group })}
        onClick={() => void commands.execute(id, { group })}
      >
        {label}
      </button>
    );
  const download = (format: 'csv' | 'parquet', label: string) => (
    <button
      className="jp-mod-styled jp-mod-reject"
      title={trans.__('Download the table with all columns')}
      onClick={() =>
        void resultsApi.getResultsFile(group, format).then(
          file => saveFile(file, `${group}.${format}`, trans),
          (error: unknown) => showError(error, trans, false)
        )
      }
    >
      {label}
    </button>
  );
  return (
    <div className="jp-ToJobResults-head">
      <div className="jp-ToJobResults-standing">
        <h2 tabIndex={-1}>{trans.__('Results of %1', group)}</h2>
        <GroupProgress group={group} jobs={members} trans={trans} />
      </div>
      <div className="jp-ToJobResults-commands">
        {command(
          GroupCommandIDs.rerunFailed,
          trans.__('Rerun Failed (%1)', failed)
        )}
        {command(GroupCommandIDs.cancel, trans.__('Cancel'))}
        {download('csv', trans.__('Download CSV'))}
        {download('parquet', trans.__('Download Parquet'))}
      </div>
    </div>
  );
}

function AllColumns({ model, trans }: Props): ReactElement {
  return (
    <label className="jp-ToJobResults-all">
      <input
        type="checkbox"
        checked={model.showsAll}
        onChange={({ target }) => model.set({ showsAll: target.checked })}
      />{' '}
      {trans.__('All columns')}
    </label>
  );
}
