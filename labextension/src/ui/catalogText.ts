/**
 * The titles and descriptions of the catalog that is shipped, in the user's language. Those of an
 * administrator's own catalog stay as they were written.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

/** A text of a catalog in the user's language, if it is one of the shipped catalog. */
export function catalogText(text: string, trans: TranslationBundle): string {
  return shippedTexts(trans)[text] ?? text;
}

function shippedTexts(trans: TranslationBundle): Record<string, string> {
  return {
    // Flavors
    Small: trans.__('Small'),
    'Quick checks': trans.__('Quick checks'),
    Medium: trans.__('Medium'),
    'Data preparation': trans.__('Data preparation'),
    Large: trans.__('Large'),
    'Big tables and long loops': trans.__('Big tables and long loops'),
    'Extra large': trans.__('Extra large'),
    'A machine almost for itself': trans.__('A machine almost for itself'),
    'Part of a GPU': trans.__('Part of a GPU'),
    'Trying out, and small models': trans.__('Trying out, and small models'),
    'One GPU': trans.__('One GPU'),
    'Training on one whole GPU': trans.__('Training on one whole GPU'),
    'Four GPUs': trans.__('Four GPUs'),
    'Training on four GPUs of one node': trans.__(
      'Training on four GPUs of one node'
    ),
    // Devices
    CPU: trans.__('CPU'),
    'NVIDIA GPU': trans.__('NVIDIA GPU'),
    'NVIDIA T4, 16 GB': trans.__('NVIDIA T4, 16 GB'),
    'NVIDIA A100, 80 GB': trans.__('NVIDIA A100, 80 GB'),
    '1/7 of an A100, 10 GB': trans.__('1/7 of an A100, 10 GB'),
    'A slice that no neighbour can slow down': trans.__(
      'A slice that no neighbour can slow down'
    ),
    '1/10 of an A100': trans.__('1/10 of an A100'),
    '1/20 of an A100': trans.__('1/20 of an A100'),
    '1/50 of an A100': trans.__('1/50 of an A100'),
    'A GPU shared with others': trans.__('A GPU shared with others'),
    'Memory and speed depend on the neighbours': trans.__(
      'Memory and speed depend on the neighbours'
    )
  };
}
