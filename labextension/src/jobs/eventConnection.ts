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
export class EventConnection {
  constructor(private readonly _settings: ServerConnection.ISettings) {}

  /** An event came. */
  get eventReceived(): ISignal<EventConnection, Event.Emission> {
    return this._eventReceived;
  }

  /** The connection is there (again): what was missed before can be asked for. */
  get opened(): ISignal<EventConnection, void> {
    return this._opened;
  }

  /** The connection was lost, or could not be had; it is tried again, less and less often. */
  get closed(): ISignal<EventConnection, void> {
    return this._closed;
  }

  /** Connect now, unless that is so or under way. */
  connect(): void {
    if (this._isOpen) {
      return;
    }
    this.disconnect();
    this._manager = new EventManager({
      serverSettings: {
        ...this._settings,
        WebSocket: this._observedWebSocket()
      },
      // A hidden page hears what happens, too: its toasts wait for the user.
      standby: 'never'
    });
    this._manager.stream.connect((_, emission) =>
      this._eventReceived.emit(emission)
    );
  }

  /** Listen no more. */
  disconnect(): void {
    this._isOpen = false;
    this._manager?.dispose();
    this._manager = null;
    this._socket = null;
  }

  /** A WebSocket that tells of its own beginning and end; one of a former manager is not heard. */
  private _observedWebSocket(): typeof WebSocket {
    const observe = (socket: WebSocket) => {
      this._socket = socket;
      const isCurrent = () => socket === this._socket && this._manager !== null;
      socket.addEventListener('open', () => {
        if (isCurrent()) {
          this._isOpen = true;
          this._opened.emit();
        }
      });
      socket.addEventListener('close', () => {
        if (isCurrent()) {
          this._isOpen = false;
          this._closed.emit();
        }
      });
    };
    return class extends this._settings.WebSocket {
      constructor(url: string | URL, protocols?: string | string[]) {
        super(url, protocols);
        observe(this);
      }
    };
  }

  private _manager: EventManager | null = null;
  private _socket: WebSocket | null = null;
  private _isOpen = false;
  private readonly _eventReceived = new Signal<this, Event.Emission>(this);
  private readonly _opened = new Signal<this, void>(this);
  private readonly _closed = new Signal<this, void>(this);
}
