/** Binds components to a model: they render synchronously whenever it has changed. */
import type { ISignal } from '@lumino/signaling';
import { useCallback, useSyncExternalStore } from 'react';

/** A model that signals its changes and counts them. */
export type ObservableModel = {
  readonly changed: ISignal<unknown, unknown>;
  readonly version: number;
};

/**
 * Render at each change of the model. Synchronously, because a late render moves the caret while
 * the user types.
 */
export function useModel(model: ObservableModel): void {
  const subscribe = useCallback(
    (listener: () => void) => {
      model.changed.connect(listener);
      return () => {
        model.changed.disconnect(listener);
      };
    },
    [model]
  );
  useSyncExternalStore(subscribe, () => model.version);
}
