/** The choices that the user's settings make for a notebook whose jobs tell no flavor. */
import type { Preferences } from '../settings/preferences';
import type { RememberedChoices } from './memory';

/** Fill in the flavor and device of the settings where no flavor is remembered. */
export function withDefaults(
  remembered: RememberedChoices,
  { flavor, device }: Preferences
): RememberedChoices {
  return remembered.choices?.flavor !== undefined
    ? remembered
    : {
        ...remembered,
        choices: {
          ...remembered.choices,
          ...(flavor && { flavor }),
          ...(device && { device })
        }
      };
}
