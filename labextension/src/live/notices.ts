/** Texts that replace outputs which the live view does not show. */
import type { TranslationBundle } from '@jupyterlab/translation';

import { formatBytes } from '../ui/format';
import type { Notices } from './outputs';

/** Create the notices in the user's language. */
export function createNotices(trans: TranslationBundle): Notices {
  const line = (text: string) => `[… ${text} …]\n`;
  return {
    dropped: (characters, outputs) =>
      line(
        outputs === 0
          ? trans.__(
              'the first %1 of text are not shown here: the result has all',
              formatBytes(characters)
            )
          : trans._n(
              '%1 earlier output is not shown here: the result has all',
              '%1 earlier outputs are not shown here: the result has all',
              outputs
            )
      ),
    damaged: bytes =>
      line(trans.__('%1 of the journal are damaged here', formatBytes(bytes))),
    omitted: bytes =>
      line(
        trans.__(
          'an output of %1 is not shown here: the result has it',
          formatBytes(bytes)
        )
      ),
    capped: (bytes, limit) =>
      line(
        bytes === null
          ? trans.__(
              'the output of this run reached its cap of %1: from here on much of it may be dropped',
              formatBytes(limit)
            )
          : trans.__(
              "%1 of this cell's output dropped here: the run is over its cap of %2",
              formatBytes(bytes),
              formatBytes(limit)
            )
      )
  };
}
