/** The results of a group side by side, in the main area. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { HTMLSelect, ReactWidget } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReactElement } from 'react';

import { failedJobs, GroupCommandIDs } from '../groupCommands';
import type { IResultsApi } from '../jobs/client';
import type { IJobs } from '../tokens';
import { errorText, showError } from '../ui/errors';
import { GroupProgress } from '../ui/groupProgress';
import { useModel } from '../ui/useModel';
import { columnTitle } from './columns';
import { saveFile } from './download';
import { Matrix, type MatrixServices } from './matrix';
import { type Best, ResultsModel } from './model';
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
    const { jobs, resultsApi, trans } = _services;
    this.addClass('jp-ToJobResults');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('Results of %1', group));
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

function Content(props: Props): ReactElement {
  const { model, commands, pictures, trans } = props;
  useModel(model);
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
          <Plot model={model} trans={trans} />
          <Controls {...props} />
          <Matrix
            model={model}
            commands={commands}
            pictures={pictures}
            trans={trans}
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
          file => saveFile(file, `${group}.${format}`),
          (error: unknown) => showError(error, trans, false)
        )
      }
    >
      {label}
    </button>
  );
  return (
    <header className="jp-ToJobResults-head">
      <div className="jp-ToJobResults-standing">
        <h2>{trans.__('Results of %1', group)}</h2>
        <GroupProgress group={group} jobs={members} trans={trans} />
      </div>
      <div className="jp-ToJobResults-commands">
        {command(
          GroupCommandIDs.rerunFailed,
          trans.__('Rerun What Failed (%1)', failed)
        )}
        {command(GroupCommandIDs.cancel, trans.__('Cancel'))}
        {download('csv', trans.__('CSV'))}
        {download('parquet', trans.__('Parquet'))}
      </div>
    </header>
  );
}

/** What is the best run, and which columns are shown. */
function Controls({ model, trans }: Props): ReactElement {
  const { best, numberColumns, showsAll } = model;
  const setBest = (changes: Partial<Best>) =>
    model.set({ best: { column: '', goal: 'max', ...best, ...changes } });
  return (
    <div className="jp-ToJobResults-controls">
      {numberColumns.length > 0 && (
        <span>
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
          </label>{' '}
          <HTMLSelect
            aria-label={trans.__('By which value a run is the best')}
            value={best?.column ?? ''}
            onChange={({ target }) => setBest({ column: target.value })}
          >
            {best === null && <option value="">—</option>}
            {numberColumns.map(column => (
              <option key={column.name} value={column.name}>
                {columnTitle(column, trans)}
              </option>
            ))}
          </HTMLSelect>
        </span>
      )}
      <label>
        <input
          type="checkbox"
          checked={showsAll}
          onChange={({ target }) => model.set({ showsAll: target.checked })}
        />{' '}
        {trans.__('All columns')}
      </label>
    </div>
  );
}
