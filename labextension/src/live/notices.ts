/** Texts that replace outputs which the live view does not show. */
import type { TranslationBundle } from '@jupyterlab/translation';

import { formatBytes } from '../ui/format';

/** The notices by what happened to the output. */
export type Notices = ReturnType<typeof createNotices>;

/** Create the notices in the user's language. */
export function createNotices(trans: TranslationBundle) {
  return {
    ...createCutNotices(trans),
    /** For dropped text, or dropped outputs. */
    dropped: (characters: number, outputs: number) =>
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
    damaged: (bytes: number) =>
      line(trans.__('%1 of the journal are damaged here', formatBytes(bytes))),
    omitted: (bytes: number) =>
      line(
        trans.__(
          'an output of %1 is not shown here: the result has it',
          formatBytes(bytes)
        )
      ),
    capped: (bytes: number | null, limit: number) =>
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

/** Create those for where a part of the journal is missing. */
function createCutNotices(trans: TranslationBundle) {
  return {
    /** For what a view skips that does not keep up. */
    skipped: (bytes: number) =>
      line(
        trans.__(
          'cut: about %1 of output are not shown here: the result has all',
          formatBytes(bytes)
        )
      ),
    /** For the end of a journal of which a gateway takes no more. */
    cut: (limit: number) =>
      line(
        trans.__(
          'cut: the journal of this run ends here, over its limit of %1',
          formatBytes(limit)
        )
      )
  };
}

const line = (text: string) => `[… ${text} …]\n`;
