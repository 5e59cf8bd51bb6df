/**
 * Holds back what a page shows while the pointer is pressed. Otherwise news that arrive between
 * press and release move a control away under the pointer, and the click is lost.
 */

/** Runs functions at once, or after the release of a pressed pointer. */
export class PressGate {
  /** @param events the target of the pointer's events */
  constructor(events: EventTarget = window) {
    const listen = (type: string, listener: (event: Event) => void) =>
      events.addEventListener(type, listener, { capture: true, passive: true });
    listen('pointerdown', event => {
      this._isPressed = (event as PointerEvent).button === 0;
    });
    // The click comes after the release. What its listeners change is shown at once.
    listen('click', () => (this._isPressed = false));
    for (const type of ['pointerup', 'pointercancel', 'keydown']) {
      listen(type, () => this._release());
    }
    listen('blur', ({ target }) => {
      if (target === events) {
        this._release(); // the window's own, not that of an element in it
      }
    });
    // Some releases are not reported, for example those outside of the window.
    listen('pointermove', event => {
      if ((event as PointerEvent).buttons === 0) {
        this._release();
      }
    });
  }

  /** Run a function now, or once after the release, however often it is passed until then. */
  readonly run = (update: () => void): void => {
    if (this._isPressed) {
      this._held.add(update);
    } else {
      update();
    }
  };

  /** Forget a function that waits for the release. */
  forget(update: () => void): void {
    this._held.delete(update);
  }

  private _release(): void {
    if (this._isPressed || this._held.size > 0) {
      setTimeout(() => {
        this._isPressed = false;
        const updates = [...this._held];
        this._held.clear();
        updates.forEach(update => update());
      });
    }
  }

  private _isPressed = false;
  private readonly _held = new Set<() => void>();
}

/** The gate of this page. */
export const pressGate = new PressGate();
