/** What is said in a running notebook in place of what is not shown. */
import type { TranslationBundle } from '@jupyterlab/translation';

import { size } from '../ui/format';
import type { Notes } from './outputs';

/** The notes in the user's language. */
export function notesIn(trans: TranslationBundle): Notes {
  const line = (words: string) => `[… ${words} …]\n`;
  return {
    dropped: (characters, outputs) =>
      line(
        outputs === 0
          ? trans.__(
              'the first %1 of text are not shown here: the result has all',
              size(characters)
            )
          : trans._n(
              '%1 earlier output is not shown here: the result has all',
              '%1 earlier outputs are not shown here: the result has all',
              outputs
            )
      ),
    damaged: bytes =>
      line(trans.__('%1 of the journal are damaged here', size(bytes))),
    omitted: bytes =>
      line(
        trans.__(
          'an output of %1 is not shown here: the result has it',
          size(bytes)
        )
      ),
    capped: (bytes, limit) =>
      line(
        bytes === null
          ? trans.__(
              'the output of this run reached its cap of %1: from here on much of it may be dropped',
              size(limit)
            )
          : trans.__(
              "%1 of this cell's output dropped here: the run is over its cap of %2",
              size(bytes),
              size(limit)
            )
      )
  };
}
