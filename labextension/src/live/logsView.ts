/** A job's logs: the text that it prints. JupyterLab renders colors, and no HTML. */
import type { IRenderMime, IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { Panel } from '@lumino/widgets';

import { CommandIDs } from '../jobCommands';
import { JobView, type ViewServices } from './jobView';
import { createNotices } from './notices';
import { StreamText } from './streamText';

/** Characters of a part, which is rendered as a unit, and how many parts are kept. */
const PART_CHARS = 16 << 10;
const MAX_PARTS = 64;

/** The distance that counts as the end, in pixels. */
const END_MARGIN = 40;

/**
 * How long an end counts where it was, in milliseconds. Whoever scrolls aims at the end in sight,
 * and a page turns smoothly for about 150 ms, while lines move the end away.
 */
const END_AGE = 500;

/** The MIME type that JupyterLab renders as text with colors, and never as HTML. */
const TEXT_MIME_TYPE = 'application/vnd.jupyter.stdout';

/** A text in parts, of which only the last is rendered again. */
class LogText extends Panel {
  constructor(
    private readonly _rendermime: IRenderMimeRegistry,
    private readonly _truncationText: string
  ) {
    super();
    this.addClass('jp-ToJob-text');
    this.node.tabIndex = 0; // makes it scrollable by keyboard
    this.node.setAttribute('role', 'log');
    this.node.setAttribute('aria-live', 'off'); // a screen reader would not stop reading
    this.node.addEventListener('scroll', () => this._onScroll());
    this._resizeObserver.observe(this.node);
  }

  override dispose(): void {
    this._resizeObserver.disconnect();
    super.dispose();
  }

  /** Append text, and keep the end in sight if it was. */
  append(text: string): void {
    this._stream.append(text);
    let remaining = this._stream.text;
    while (remaining.length > PART_CHARS) {
      const end = remaining.lastIndexOf('\n', PART_CHARS) + 1 || PART_CHARS;
      this._renderPart(remaining.slice(0, end));
      this._lastPart = null;
      remaining = remaining.slice(end);
      this._stream = new StreamText(Infinity);
      this._stream.append(remaining);
    }
    this._renderPart(remaining);
    this._dropOldParts();
    this._scrollToEnd();
    const { scrollHeight } = this.node;
    setTimeout(() => (this._earlierEnd = scrollHeight), END_AGE);
  }

  /** Follow the end from when it is reached until the user scrolls up. */
  private _onScroll(): void {
    const { scrollTop, scrollHeight, clientHeight } = this.node;
    const isUp = scrollTop < this._lastScrollTop;
    this._lastScrollTop = scrollTop;
    const end = isUp ? scrollHeight : Math.min(scrollHeight, this._earlierEnd);
    if (end - scrollTop - clientHeight >= END_MARGIN) {
      this._isFollowing &&= !isUp;
      return;
    }
    this._isFollowing = true;
    if (!isUp) {
      this._scrollToEnd();
    }
  }

  private _scrollToEnd(): void {
    if (this._isFollowing) {
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

  /** Whether the end is kept in sight. */
  private _isFollowing = true;
  private _lastScrollTop = 0;
  /** The text's height `END_AGE` ago, in pixels. */
  private _earlierEnd = Infinity;
  /** A pane that gets lower keeps its place and not its end: that is no scrolling of the user. */
  private readonly _resizeObserver = new ResizeObserver(() =>
    this._scrollToEnd()
  );
  private _lastPart: IRenderMime.IRenderer | null = null;
  /** The last part's text, with carriage returns applied. */
  private _stream = new StreamText(Infinity);
}

export function createLogsView(
  jobName: string,
  services: ViewServices,
  rendermime: IRenderMimeRegistry
): JobView {
  const { journalApi, trans } = services;
  const text = new LogText(
    rendermime,
    trans.__('The beginning is no longer shown: the result has all.')
  );
  text.node.setAttribute(
    'aria-label',
    trans.__('Text that %1 printed', jobName)
  );
  const notices = createNotices(trans);
  const read = async (offset: number, skipped: number) => {
    const chunk = await journalApi.readLogs(jobName, offset);
    if (skipped > 0 && !text.isDisposed) {
      text.append(`\n${notices.skipped(skipped)}`);
    }
    if (chunk.text !== '' && !text.isDisposed) {
      text.append(chunk.text);
    }
    return chunk;
  };
  return new JobView(jobName, services, text, CommandIDs.watch, read);
}
