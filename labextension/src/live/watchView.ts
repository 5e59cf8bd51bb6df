/** Watch live: a heading, and the notebook below it. */
import type * as nbformat from '@jupyterlab/nbformat';
import { PanelLayout, Widget } from '@lumino/widgets';

import type { Journal } from '../api';
import { JOB } from '../jobCommands';
import type { IReader } from '../jobs/client';
import type { IJobs } from '../tokens';
import { Fold, type JournalRecord } from './fold';
import { Follower } from './follower';
import { Heading, type Subject } from './heading';
import { LiveNotebook, type Renderers } from './liveNotebook';
import { notesIn } from './notices';

/** What a view of a job needs. */
export type Means = Pick<Subject, 'jobs' | 'commands' | 'trans'> & {
  reader: IReader;
};

/** A job's notebook as it runs. */
export class WatchView extends Widget {
  constructor(
    readonly job: string,
    means: Means,
    renderers: Renderers
  ) {
    super();
    const { jobs, reader, trans } = means;
    this._jobs = jobs;
    this._reader = reader;
    this.addClass('jp-ToJob-watch');
    this._fold = new Fold(notesIn(trans));
    this._follower = new Follower(
      job,
      jobs,
      (name, offset) => reader.journal(name, offset),
      piece => this._take(piece)
    );
    this._notebook = new LiveNotebook(this._fold, renderers);
    const layout = (this.layout = new PanelLayout());
    layout.addWidget(
      new Heading({ ...means, follower: this._follower, other: JOB.logs })
    );
    layout.addWidget(this._notebook);
    const { outerNode } = this._notebook;
    outerNode.tabIndex = 0; // so that the keyboard can scroll it
    outerNode.setAttribute('role', 'region');
    outerNode.setAttribute('aria-label', trans.__('Cells of %1', job));
    // The menus of notebooks that can be edited are not this one's.
    this.node.addEventListener('contextmenu', event => event.stopPropagation());
    void this._follower.more();
  }

  override dispose(): void {
    this._follower.dispose();
    super.dispose();
  }

  private async _take({ records, next, end }: Journal): Promise<void> {
    for (const record of records as JournalRecord[]) {
      this._fold.feed(record);
      if (this._fold.isWanting) {
        const notebook = await this._reader.notebook(this.job);
        this._fold.prepare(withoutBanners(notebook as Content));
      }
    }
    if (!this.isDisposed) {
      const size = this._jobs.get(this.job)?.journal ?? 0;
      this._notebook.sync(end || next >= size);
    }
  }

  private readonly _jobs: IJobs;
  private readonly _reader: IReader;
  private readonly _fold: Fold;
  private readonly _follower: Follower<Journal>;
  private readonly _notebook: LiveNotebook;
}

type Content = nbformat.INotebookContent;

/** A result as it was before it ended: the records bring what tells of its end. */
function withoutBanners(notebook: Content): Content {
  const cells = notebook.cells.filter(({ metadata }) => {
    const { tags } = metadata as { tags?: string[] };
    return !tags?.includes('papermill-error-cell-tag');
  });
  return { ...notebook, cells };
}
