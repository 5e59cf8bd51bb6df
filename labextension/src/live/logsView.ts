/** A job's logs as text, following what it prints. JupyterLab renders the colours, and no HTML. */
import type { IRenderMime, IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { Panel, PanelLayout, Widget } from '@lumino/widgets';

import type { Logs } from '../api';
import { JOB } from '../jobCommands';
import { Follower } from './follower';
import { Heading } from './heading';
import { StreamText } from './streamText';
import type { Means } from './watchView';

/** Characters of a part, which is rendered as a whole, and how many parts are kept. */
const PART = 16 << 10;
const MOST_PARTS = 64;

/** What printed text is to JupyterLab's renderers: text with colours, and never HTML. */
const TEXT = 'application/vnd.jupyter.stdout';

/** A text of which only the last part is ever rendered again. */
class Text extends Panel {
  constructor(
    private readonly _rendermime: IRenderMimeRegistry,
    private readonly _cut: string
  ) {
    super();
    this.addClass('jp-ToJob-text');
    this.node.tabIndex = 0; // so that the keyboard can scroll it
    this.node.setAttribute('role', 'log');
    this.node.setAttribute('aria-live', 'off'); // it would never end
  }

  /** Show more; the end stays in sight if it was. */
  append(text: string): void {
    const { scrollTop, scrollHeight, clientHeight } = this.node;
    const isAtEnd = scrollHeight - scrollTop - clientHeight < 40;
    this._stream.feed(text);
    let rest = this._stream.text;
    while (rest.length > PART) {
      const end = rest.lastIndexOf('\n', PART) + 1 || PART;
      this._draw(rest.slice(0, end));
      this._last = null;
      rest = rest.slice(end);
      this._stream = new StreamText(Infinity);
      this._stream.feed(rest);
    }
    this._draw(rest);
    this._bound();
    if (isAtEnd) {
      this.node.scrollTop = this.node.scrollHeight;
    }
  }

  private _draw(text: string): void {
    if (this._last === null) {
      this._last = this._rendermime.createRenderer(TEXT);
      this.addWidget(this._last);
    }
    const model = this._rendermime.createModel({ data: { [TEXT]: text } });
    void this._last.renderModel(model);
  }

  private _bound(): void {
    while (this.widgets.length > MOST_PARTS) {
      this.widgets[0]!.dispose();
      this.node.dataset.cut = this._cut;
    }
  }

  private _last: IRenderMime.IRenderer | null = null;
  /** The last part's text: what a progress bar overwrites is gone. */
  private _stream = new StreamText(Infinity);
}

/** A job's logs. */
export class LogsView extends Widget {
  constructor(
    readonly job: string,
    means: Means,
    rendermime: IRenderMimeRegistry
  ) {
    super();
    const { jobs, reader, trans } = means;
    this.addClass('jp-ToJob-watch');
    const text = new Text(
      rendermime,
      trans.__('The beginning is no longer shown: the result has all.')
    );
    text.node.setAttribute('aria-label', trans.__('Text that %1 printed', job));
    this._follower = new Follower(
      job,
      jobs,
      (name, offset) => reader.logs(name, offset),
      (piece: Logs) => {
        if (piece.text !== '') {
          text.append(piece.text);
        }
      }
    );
    const layout = (this.layout = new PanelLayout());
    layout.addWidget(
      new Heading({ ...means, follower: this._follower, other: JOB.watch })
    );
    layout.addWidget(text);
    void this._follower.more();
  }

  override dispose(): void {
    this._follower.dispose();
    super.dispose();
  }

  private readonly _follower: Follower<Logs>;
}
