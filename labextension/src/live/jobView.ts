/** A view that follows a job: a heading above what the job writes. */
import { PanelLayout, Widget } from '@lumino/widgets';

import type { IJournalApi } from '../jobs/client';
import { type Chunk, Follower } from './follower';
import { type HeadingProps, LiveHeading } from './heading';

export type ViewServices = Pick<HeadingProps, 'jobs' | 'commands' | 'trans'> & {
  journalApi: IJournalApi;
};

/** Shows a heading and the content, and follows the job. */
export class JobView extends Widget {
  /**
   * @param content shows what the job writes
   * @param otherCommand the command of the other view
   * @param read reads the chunk at an offset and shows it in the content, after a word about
   * the bytes that are skipped before it
   */
  constructor(
    readonly jobName: string,
    services: ViewServices,
    content: Widget,
    otherCommand: string,
    read: (offset: number, skipped: number) => Promise<Chunk>
  ) {
    super();
    this.addClass('jp-ToJob-watch');
    this._follower = new Follower(jobName, services.jobs, read);
    const layout = (this.layout = new PanelLayout());
    layout.addWidget(
      new LiveHeading({ ...services, follower: this._follower, otherCommand })
    );
    layout.addWidget(content);
    void this._follower.readMore();
  }

  override dispose(): void {
    this._follower.dispose();
    super.dispose();
  }

  private readonly _follower: Follower;
}
