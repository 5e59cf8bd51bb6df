/** Binds components to a model: they render synchronously whenever it has changed. */
import type { ISignal } from '@lumino/signaling';
import { useCallback, useSyncExternalStore } from 'react';

import { pressGate } from './press';

/** A model that signals its changes and counts them. */
export type ObservableModel = {
  readonly changed: ISignal<unknown, unknown>;
  readonly version: number;
};

/**
 * Render at each change of the model, or after the release of a pressed pointer. Synchronously,
 * because a late render moves the caret while the user types.
 */
export function useModel(model: ObservableModel): void {
  const subscribe = useCallback(
    (listener: () => void) => {
      const onChanged = () => pressGate.run(listener);
      model.changed.connect(onChanged);
      return () => {
        model.changed.disconnect(onChanged);
        pressGate.forget(listener);
      };
    },
    [model]
  );
  useSyncExternalStore(subscribe, () => model.version);
}
