/**
 * Finds numbers that the browser may have rounded: it reads a whole number beyond 2^53 as the
 * nearest one that it has.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { JSONValue } from '@lumino/coreutils';

import { CannotSubmit } from './errors';

/** Whether a value that came as JSON has such a number. Where a float was meant, it is exact. */
export function mayBeRounded(value: JSONValue): boolean {
  return typeof value === 'number'
    ? Number.isInteger(value) && !Number.isSafeInteger(value)
    : value !== null &&
        typeof value === 'object' &&
        Object.values(value as Record<string, JSONValue>).some(mayBeRounded);
}

/** @throws CannotSubmit if one of the parameters may be rounded. */
export function requireExact(
  parameters: readonly [name: string, value: unknown][],
  trans: TranslationBundle
): void {
  const rounded = parameters.find(([, value]) =>
    mayBeRounded(value as JSONValue)
  );
  if (rounded !== undefined) {
    throw new CannotSubmit(
      trans.__(
        'The browser may round the large number of %1. A terminal keeps all its digits.',
        rounded[0]
      )
    );
  }
}
