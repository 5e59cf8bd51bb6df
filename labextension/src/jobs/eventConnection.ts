/**
 * The connection for the server's events. We use an event manager of our own: the shared one has no
 * signals for a lost or restored connection, and without those the page would have to poll.
 */
import {
  type Event,
  EventManager,
  ServerConnection
} from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

/** Receives events, and signals when the connection opens or closes. */
export class EventConnection {
  constructor(private readonly _settings: ServerConnection.ISettings) {}

  readonly eventReceived = new Signal<this, Event.Emission>(this);

  /** The connection is open (again). Events before that may have been missed. */
  readonly opened = new Signal<this, void>(this);

  /** The connection was lost or refused. The event manager retries with increasing delays. */
  readonly closed = new Signal<this, void>(this);

  /** Connect now, unless the connection is open. */
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
      // Hidden pages receive events, too: their notifications wait for the user.
      standby: 'never'
    });
    this._manager.stream.connect((_, emission) =>
      this.eventReceived.emit(emission)
    );
  }

  /** Close the connection and do not reconnect. */
  disconnect(): void {
    this._isOpen = false;
    this._manager?.dispose();
    this._manager = null;
    this._socket = null;
  }

  /**
   * A WebSocket class that reports opening and closing, and ignores sockets of a former manager.
   */
  private _observedWebSocket(): typeof WebSocket {
    const observe = (socket: WebSocket) => {
      this._socket = socket;
      const report = (isOpen: boolean) => {
        if (socket === this._socket) {
          this._isOpen = isOpen;
          (isOpen ? this.opened : this.closed).emit();
        }
      };
      socket.addEventListener('open', () => report(true));
      socket.addEventListener('close', () => report(false));
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
}
