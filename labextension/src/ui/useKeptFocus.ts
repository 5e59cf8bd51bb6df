/** Keeps the keyboard where it was: what goes from the page would take the focus with it. */
import { useLayoutEffect } from 'react';

/**
 * Give the focus to somebody else where what had it is no longer shown.
 *
 * @param container what it is kept in
 * @param findTarget finds who gets it
 */
export function useKeptFocus(
  container: HTMLElement,
  findTarget: (place: HTMLElement) => HTMLElement | null
): void {
  // Asked while what is old is still there: nobody tells when it is removed.
  const hadFocus = container.contains(document.activeElement);
  useLayoutEffect(() => {
    if (hadFocus && document.activeElement === document.body) {
      findTarget(container)?.focus();
    }
  });
}
