/**
 * How many views one output has. Boxes may share their children, so that a few models could be shown
 * any number of times.
 */

/** The most views of one output, with those in the Output widgets in it. */
const MAX_VIEWS = 1000;

export class ViewCount {
  add(): void {
    this._count += 1;
  }

  remove(): void {
    this._count -= 1;
  }

  /** Whether there may be no more views. */
  get isFull(): boolean {
    return this._count >= MAX_VIEWS;
  }

  private _count = 0;
}
