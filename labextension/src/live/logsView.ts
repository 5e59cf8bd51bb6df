/** A job's logs as text, following what it prints. JupyterLab renders the colours, and no HTML. */
import type { IRenderMime, IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { Panel, PanelLayout, Widget } from '@lumino/widgets';

import type { Logs } from '../api';
import { CommandIDs } from '../jobCommands';
import { Follower } from './follower';
import { LiveHeading } from './heading';
import { StreamText } from './streamText';
import type { ViewServices } from './watchView';

/** Characters of a part, which is rendered as a whole, and how many parts are kept. */
const PART_CHARS = 16 << 10;
const MAX_PARTS = 64;

/** What printed text is to JupyterLab's renderers: text with colours, and never HTML. */
const TEXT_MIME_TYPE = 'application/vnd.jupyter.stdout';

/** A text of which only the last part is ever rendered again. */
class LogText extends Panel {
  constructor(
    private readonly _rendermime: IRenderMimeRegistry,
    private readonly _truncationText: string
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
    while (rest.length > PART_CHARS) {
      const end = rest.lastIndexOf('\n', PART_CHARS) + 1 || PART_CHARS;
      this._renderPart(rest.slice(0, end));
      this._lastPart = null;
      rest = rest.slice(end);
      this._stream = new StreamText(Infinity);
      this._stream.feed(rest);
    }
    this._renderPart(rest);
    this._dropOldParts();
    if (isAtEnd) {
      this.node.scrollTop = this.node.scrollHeight;
    }
  }

  private _renderPart(text: string): void {
    if (this._lastPart === null) {
      this._lastPart = this._rendermime.createRenderer(TEXT_MIME_TYPE);
      this.addWidget(this._lastPart);
    }
    const model = this._rendermime.createModel({
      data: { [TEXT_MIME_TYPE]: text }
    });
    void this._lastPart.renderModel(model);
  }

  private _dropOldParts(): void {
    while (this.widgets.length > MAX_PARTS) {
      this.widgets[0]!.dispose();
      this.node.dataset.cut = this._truncationText;
    }
  }

  private _lastPart: IRenderMime.IRenderer | null = null;
  /** The last part's text: what a progress bar overwrites is gone. */
  private _stream = new StreamText(Infinity);
}

/** A job's logs. */
export class LogsView extends Widget {
  constructor(
    readonly jobName: string,
    services: ViewServices,
    rendermime: IRenderMimeRegistry
  ) {
    super();
    const { jobs, journalApi: reader, trans } = services;
    this.addClass('jp-ToJob-watch');
    const text = new LogText(
      rendermime,
      trans.__('The beginning is no longer shown: the result has all.')
    );
    text.node.setAttribute(
      'aria-label',
      trans.__('Text that %1 printed', jobName)
    );
    this._follower = new Follower(
      jobName,
      jobs,
      (name, offset) => reader.readLogs(name, offset),
      (piece: Logs) => {
        if (piece.text !== '') {
          text.append(piece.text);
        }
      }
    );
    const layout = (this.layout = new PanelLayout());
    layout.addWidget(
      new LiveHeading({
        ...services,
        follower: this._follower,
        otherCommand: CommandIDs.watch
      })
    );
    layout.addWidget(text);
    void this._follower.readMore();
  }

  override dispose(): void {
    this._follower.dispose();
    super.dispose();
  }

  private readonly _follower: Follower<Logs>;
}
