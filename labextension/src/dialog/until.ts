/** Waits for what a signal tells of. */
import type { ISignal } from '@lumino/signaling';

/** Wait until a condition is true, which is looked at now and at each emission of the signal. */
export function until(
  changed: ISignal<unknown, void>,
  isTrue: () => boolean
): Promise<void> {
  return new Promise(resolve => {
    const check = () => {
      if (isTrue()) {
        changed.disconnect(check);
        resolve();
      }
    };
    changed.connect(check);
    check();
  });
}
