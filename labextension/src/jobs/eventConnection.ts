/**
 * The server's events, and whether they come. JupyterLab's own event manager does the work, but an
 * instance of ours: the shared one does not tell when its connection was lost or is there again,
 * and whoever does not know that must poll, or show what is no longer so.
 */
import {
  type Event,
  EventManager,
  ServerConnection
} from '@jupyterlab/services';
import { type ISignal, Signal } from '@lumino/signaling';

/** A connection that the server's events come through. */
export class EventLine {
  constructor(private readonly _settings: ServerConnection.ISettings) {}

  /** An event came. */
  get heard(): ISignal<EventLine, Event.Emission> {
    return this._heard;
  }

  /** The connection is there (again): what was missed before can be asked for. */
  get opened(): ISignal<EventLine, void> {
    return this._opened;
  }

  /** The connection was lost, or could not be had; it is tried again, less and less often. */
  get closed(): ISignal<EventLine, void> {
    return this._closed;
  }

  /** Connect now, unless that is so or under way. */
  connect(): void {
    if (this._isUp) {
      return;
    }
    this.disconnect();
    this._manager = new EventManager({
      serverSettings: { ...this._settings, WebSocket: this._watched() },
      // A hidden page hears what happens, too: its toasts wait for the user.
      standby: 'never'
    });
    this._manager.stream.connect((_, emission) => this._heard.emit(emission));
  }

  /** Listen no more. */
  disconnect(): void {
    this._isUp = false;
    this._manager?.dispose();
    this._manager = null;
    this._socket = null;
  }

  /** A WebSocket that tells of its own beginning and end; one of a former manager is not heard. */
  private _watched(): typeof WebSocket {
    const tell = (socket: WebSocket) => {
      this._socket = socket;
      const isCurrent = () => socket === this._socket && this._manager !== null;
      socket.addEventListener('open', () => {
        if (isCurrent()) {
          this._isUp = true;
          this._opened.emit();
        }
      });
      socket.addEventListener('close', () => {
        if (isCurrent()) {
          this._isUp = false;
          this._closed.emit();
        }
      });
    };
    return class extends this._settings.WebSocket {
      constructor(url: string | URL, protocols?: string | string[]) {
        super(url, protocols);
        tell(this);
      }
    };
  }

  private _manager: EventManager | null = null;
  private _socket: WebSocket | null = null;
  private _isUp = false;
  private readonly _heard = new Signal<this, Event.Emission>(this);
  private readonly _opened = new Signal<this, void>(this);
  private readonly _closed = new Signal<this, void>(this);
}
