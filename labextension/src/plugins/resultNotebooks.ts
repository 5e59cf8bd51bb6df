/**
 * Results that are open as notebooks: they start no kernel, and lead back to their source. What
 * they do is loaded when it is used.
 */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { INotebookTracker, type NotebookPanel } from '@jupyterlab/notebook';
import {
  ITranslator,
  nullTranslator,
  type TranslationBundle
} from '@jupyterlab/translation';
import type { JSONObject } from '@lumino/coreutils';

import { CommandIDs, jobNameOf } from '../jobCommands';
import { isNotFound } from '../jobs/client';
import { type Job, resultPath } from '../jobs/job';
import {
  type Provenance,
  resultProvenance
} from '../resultNotebook/provenance';
import { IJobs } from '../tokens';
import { showError } from '../ui/errors';
import { findFailedCell, openSource } from '../ui/openResult';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-to-job:result-notebooks',
  description: 'Leads from results back to their sources.',
  autoStart: true,
  requires: [IJobs, INotebookTracker],
  optional: [ITranslator, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    jobs: IJobs,
    tracker: INotebookTracker,
    translator: ITranslator | null,
    palette: ICommandPalette | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_to_job');
    const results = new Results(app, jobs, tracker, trans);
    tracker.widgetAdded.connect((_, panel) => void results.adopt(panel));
    tracker.forEach(panel => void results.adopt(panel));
    results.addCommands();
    const category = trans.__('Jobs');
    palette?.addItem({ command: CommandIDs.sourceCell, category });
    palette?.addItem({ command: CommandIDs.bringBack, category });
  }
};

export default plugin;

class Results {
  constructor(
    private readonly _app: JupyterFrontEnd,
    private readonly _jobs: IJobs,
    private readonly _tracker: INotebookTracker,
    private readonly _trans: TranslationBundle
  ) {}

  /** Make an open notebook start no kernel and show the way back, if it is a result. */
  async adopt(panel: NotebookPanel): Promise<void> {
    await panel.context.ready;
    const provenance = panel.isDisposed ? null : this._provenance(panel);
    if (provenance === null) {
      return;
    }
    const { sessionContext } = panel.context;
    sessionContext.kernelPreference = {
      ...sessionContext.kernelPreference,
      shouldStart: false
    };
    const { createResultBar } = await import('../resultNotebook/resultBar');
    const failed = findFailedCell(panel.content);
    const job =
      failed === -1
        ? null
        : await this._jobs.find(provenance.job).catch(() => null); // deleted, perhaps
    if (panel.isDisposed) {
      return;
    }
    // The buttons stay right if the result is renamed, and is no longer known by its path.
    const bar = createResultBar({
      job: provenance.job,
      end:
        failed === -1
          ? 'whole'
          : job?.state === 'cancelled'
            ? 'stopped'
            : 'failed',
      openSource: () =>
        void this._try(() =>
          failed === -1
            ? this._openSource(provenance)
            : this._openCell(panel, findFailedCell(panel.content), provenance)
        ),
      bringBack: () =>
        void this._try(async () => {
          const origin = await this._locate(provenance);
          await this._copyOutputs(this._pathOf(panel), origin, null);
        }),
      trans: this._trans
    });
    panel.contentHeader.insertWidget(0, bar);
  }

  addCommands(): void {
    const trans = this._trans;
    const { commands } = this._app;
    const name = { type: 'string', description: trans.__("The job's name") };
    const index = {
      type: 'integer',
      description: trans.__(
        'The index of the cell: of the active one if left out'
      )
    };
    const { sourceCell, bringBack } = CommandIDs;
    commands.addCommand(sourceCell, {
      label: trans.__('Go to This Cell in the Source'),
      caption: trans.__('Open the notebook that was submitted, at this cell'),
      describedBy: { args: { type: 'object', properties: { index } } },
      isVisible: () => this._currentResult !== null,
      isEnabled: () => this._currentResult !== null,
      execute: args => this._try(() => this._openSourceCell(args.index))
    });
    commands.addCommand(bringBack, {
      label: trans.__('Bring Outputs Back…'),
      caption: trans.__('Copy outputs of the result into the notebook'),
      describedBy: { args: { type: 'object', properties: { name } } },
      isVisible: args => this._mayBringBack(jobNameOf(args)),
      isEnabled: args => this._mayBringBack(jobNameOf(args)),
      execute: args => this._try(() => this._bringBack(jobNameOf(args)))
    });
    this._tracker.currentChanged.connect(() => {
      commands.notifyCommandChanged(sourceCell);
      commands.notifyCommandChanged(bringBack);
    });
  }

  private async _openSourceCell(index: unknown): Promise<void> {
    const panel = this._tracker.currentWidget;
    const provenance = this._currentResult;
    if (panel === null || provenance === null) {
      return;
    }
    const at =
      typeof index === 'number' ? index : panel.content.activeCellIndex;
    await this._openCell(panel, at, provenance);
  }

  private async _openSource(provenance: Provenance): Promise<void> {
    const { notebook } = await this._locate(provenance);
    await openSource(this._app.commands, notebook, this._trans);
  }

  private async _openCell(
    panel: NotebookPanel,
    index: number,
    provenance: Provenance
  ): Promise<void> {
    const { openSourceCell } = await import('../resultNotebook/commands');
    const located = await this._locate(provenance);
    await openSourceCell(this._services, panel, index, located);
  }

  /** Bring back the outputs of a job, of the current result, or of the newest of the current source. */
  private async _bringBack(name: string): Promise<void> {
    const panel = this._tracker.currentWidget;
    const current = this._pathOf(panel);
    const result = name === '' ? this._currentResult : null;
    let origin = result && (await this._locate(result));
    let path: string | null = current;
    if (origin === null) {
      const job =
        name !== ''
          ? await this._jobs.find(name)
          : ((await this._jobs.findNewestOf(current, true)) ??
            (await this._jobs.findNewestOf(current)));
      if (job && ['pending', 'held'].includes(job.delivery.state)) {
        throw new Error(
          this._trans.__('%1 has not delivered its result yet.', job.name)
        );
      }
      path = job && resultPath(job);
      origin = job && toProvenance(job);
    }
    if (origin === null || path === null) {
      throw new Error(this._trans.__('There is no result of this notebook.'));
    }
    const source = current === origin.notebook ? panel : null;
    await this._copyOutputs(path, origin, source);
  }

  private async _copyOutputs(
    path: string,
    origin: Provenance,
    source: NotebookPanel | null
  ): Promise<void> {
    const { bringOutputsBack } = await import('../resultNotebook/commands');
    await bringOutputsBack(this._services, path, origin, source);
  }

  /**
   * The provenance with the notebook's path on this server. The path in a result counts from the
   * folder of whoever submitted it, and on a cluster from the root of all files.
   */
  private async _locate(provenance: Provenance): Promise<Provenance> {
    const job = await this._findJob(provenance.job);
    // Another notebook is one of another job, which has the name of a deleted one.
    return job !== null && isSameName(job.notebook, provenance.notebook)
      ? { ...provenance, notebook: job.notebook }
      : provenance;
  }

  /** The job of this name; null if it was deleted. */
  private async _findJob(name: string): Promise<Job | null> {
    try {
      return await this._jobs.find(name);
    } catch (error) {
      if (isNotFound(error)) {
        return null;
      }
      throw error;
    }
  }

  private _mayBringBack(name: string): boolean {
    const job = this._jobs.get(name);
    return name === ''
      ? this._tracker.currentWidget !== null
      : job !== undefined && resultPath(job) !== null;
  }

  /** What the current notebook says of its job, if it is a result. */
  private get _currentResult(): Provenance | null {
    const panel = this._tracker.currentWidget;
    return panel === null ? null : this._provenance(panel);
  }

  private _provenance(panel: NotebookPanel): Provenance | null {
    const { model } = panel.content;
    const delivered = (name: string) => {
      const job = this._jobs.get(name);
      return job === undefined ? null : resultPath(job);
    };
    return model && resultProvenance(model, this._pathOf(panel), delivered);
  }

  private _pathOf(panel: NotebookPanel | null): string {
    const { contents } = this._app.serviceManager;
    return panel === null ? '' : contents.localPath(panel.context.path);
  }

  private get _services() {
    const { commands, serviceManager } = this._app;
    return { commands, contents: serviceManager.contents, trans: this._trans };
  }

  private async _try(run: () => Promise<void>): Promise<void> {
    try {
      await run();
    } catch (error) {
      showError(error, this._trans, false);
    }
  }
}

function isSameName(path: string, other: string): boolean {
  return PathExt.basename(path) === PathExt.basename(other);
}

function toProvenance(job: Job): Provenance {
  const parameters = job.parameters as JSONObject;
  return { job: job.name, notebook: job.notebook, parameters };
}
