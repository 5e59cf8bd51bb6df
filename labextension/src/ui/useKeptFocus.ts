/** Keeps the keyboard where it was: what goes from the page would take the focus with it. */
import { useLayoutEffect } from 'react';

/**
 * Give the focus to somebody else where what had it is no longer shown.
 *
 * @param place what it is kept in
 * @param next finds who gets it
 */
export function useKeptFocus(
  place: HTMLElement,
  next: (place: HTMLElement) => HTMLElement | null
): void {
  // Asked while what is old is still there: nobody tells when it is removed.
  const hadFocus = place.contains(document.activeElement);
  useLayoutEffect(() => {
    if (hadFocus && document.activeElement === document.body) {
      next(place)?.focus();
    }
  });
}
