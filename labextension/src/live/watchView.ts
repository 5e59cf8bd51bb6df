/** The live view: a heading above the notebook. */
import type * as nbformat from '@jupyterlab/nbformat';
import { PanelLayout, Widget } from '@lumino/widgets';

import type { Journal } from '../api';
import { CommandIDs } from '../jobCommands';
import type { IJournalApi } from '../jobs/client';
import type { IJobs } from '../tokens';
import { Fold, type JournalRecord } from './fold';
import { Follower } from './follower';
import { type HeadingProps, LiveHeading } from './heading';
import { LiveNotebook, type RenderServices } from './liveNotebook';
import { createNotices } from './notices';

/** Services of the live view and the logs. */
export type ViewServices = Pick<HeadingProps, 'jobs' | 'commands' | 'trans'> & {
  journalApi: IJournalApi;
};

/** Shows a job's notebook as it runs. */
export class WatchView extends Widget {
  constructor(
    readonly jobName: string,
    services: ViewServices,
    renderServices: RenderServices
  ) {
    super();
    const { jobs, journalApi: reader, trans } = services;
    this._jobs = jobs;
    this._journalApi = reader;
    this.addClass('jp-ToJob-watch');
    this._fold = new Fold(createNotices(trans));
    this._follower = new Follower(
      jobName,
      jobs,
      (name, offset) => reader.readJournal(name, offset),
      chunk => this._onRecords(chunk)
    );
    this._notebook = new LiveNotebook(this._fold, renderServices);
    const layout = (this.layout = new PanelLayout());
    layout.addWidget(
      new LiveHeading({
        ...services,
        follower: this._follower,
        otherCommand: CommandIDs.logs
      })
    );
    layout.addWidget(this._notebook);
    const { outerNode } = this._notebook;
    outerNode.tabIndex = 0; // makes it scrollable by keyboard
    outerNode.setAttribute('role', 'region');
    outerNode.setAttribute('aria-label', trans.__('Cells of %1', jobName));
    // The context menu of notebooks that can be edited does not apply.
    this.node.addEventListener('contextmenu', event => event.stopPropagation());
    void this._follower.readMore();
  }

  override dispose(): void {
    this._follower.dispose();
    super.dispose();
  }

  private async _onRecords({ records, next, end }: Journal): Promise<void> {
    for (const record of records as JournalRecord[]) {
      this._fold.apply(record);
      if (this._fold.needsNotebook) {
        const notebook = await this._journalApi.getNotebook(this.jobName);
        this._fold.setNotebook(withoutBanners(notebook as Content));
      }
    }
    if (!this.isDisposed) {
      const size = this._jobs.get(this.jobName)?.journal ?? 0;
      this._notebook.sync(end || next >= size);
    }
  }

  private readonly _jobs: IJobs;
  private readonly _journalApi: IJournalApi;
  private readonly _fold: Fold;
  private readonly _follower: Follower<Journal>;
  private readonly _notebook: LiveNotebook;
}

type Content = nbformat.INotebookContent;

/** Remove the cells about the run's end: the records add them again. */
function withoutBanners(notebook: Content): Content {
  const cells = notebook.cells.filter(({ metadata }) => {
    const { tags } = metadata as { tags?: string[] };
    return !tags?.includes('papermill-error-cell-tag');
  });
  return { ...notebook, cells };
}
