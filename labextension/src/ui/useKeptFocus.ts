/** Keeps the keyboard focus when the focused element is removed. */
import { useLayoutEffect } from 'react';

/**
 * Move the focus when the focused element has been removed.
 *
 * @param container the element that has to keep the focus
 * @param findTarget finds the element that gets the focus
 */
export function useKeptFocus(
  container: HTMLElement,
  findTarget: (container: HTMLElement) => HTMLElement | null
): void {
  // Read during render, while the old element still exists: there is no event for its removal.
  const hadFocus = container.contains(document.activeElement);
  useLayoutEffect(() => {
    if (hadFocus && document.activeElement === document.body) {
      findTarget(container)?.focus();
    }
  });
}
