/** The choices that the user's settings make for a notebook without jobs. */
import type { Preferences } from '../settings/preferences';
import type { RememberedChoices } from './memory';

/** Fill in the flavor and device of the settings where no job is remembered. */
export function withDefaults(
  remembered: RememberedChoices,
  { flavor, device }: Preferences
): RememberedChoices {
  return remembered.choices !== undefined
    ? remembered
    : {
        ...remembered,
        choices: { ...(flavor && { flavor }), ...(device && { device }) }
      };
}
