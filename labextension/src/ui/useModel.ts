/** Binds components to a model: they are rendered again, at once, whenever it has changed. */
import type { ISignal } from '@lumino/signaling';
import { useCallback, useSyncExternalStore } from 'react';

/** What tells that it has changed, and counts how often. */
export type ObservableModel = {
  readonly changed: ISignal<unknown, unknown>;
  readonly version: number;
};

/** Render with the model; at once, because a late render moves the caret of who types. */
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
