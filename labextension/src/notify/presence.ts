/**
 * Tells whether the user has a page of this server in front. A browser may have many: Notebook 7
 * opens one for each notebook.
 */
import { Signal } from '@lumino/signaling';

/** How long other pages have for an answer, in milliseconds. */
const ANSWER_MS = 200;

type Message = 'is somebody in front?' | 'I am' | 'the user came';

/** The pages of one server in one browser, which know of each other. */
export class Presence {
  /** @param name the same in all pages of the server */
  constructor(
    name: string,
    private readonly _answerMs = ANSWER_MS
  ) {
    this._channel =
      typeof BroadcastChannel === 'undefined'
        ? null
        : new BroadcastChannel(name);
    this._channel?.addEventListener('message', ({ data }) => {
      if (data === 'is somebody in front?' && isInFront()) {
        this._send('I am');
      } else if (data === 'the user came') {
        this.userCame.emit();
      }
    });
  }

  /** The user came to another page. */
  readonly userCame = new Signal<this, void>(this);

  /** Tell the other pages that the user came to this one. */
  tellUserCame(): void {
    this._send('the user came');
  }

  /** Ask this page, then the others. */
  async isSomebodyInFront(): Promise<boolean> {
    if (isInFront() || this._channel === null) {
      return isInFront();
    }
    const channel = this._channel;
    return new Promise(resolve => {
      const end = (answer: boolean) => {
        clearTimeout(timer);
        channel.removeEventListener('message', onMessage);
        resolve(answer);
      };
      const onMessage = ({ data }: MessageEvent) => {
        if (data === 'I am') {
          end(true);
        }
      };
      const timer = setTimeout(() => end(false), this._answerMs);
      channel.addEventListener('message', onMessage);
      this._send('is somebody in front?');
    });
  }

  dispose(): void {
    this._channel?.close();
  }

  private _send(message: Message): void {
    this._channel?.postMessage(message);
  }

  private readonly _channel: BroadcastChannel | null;
}

/** Whether the user has this page in front. */
function isInFront(): boolean {
  return document.visibilityState === 'visible' && document.hasFocus();
}
