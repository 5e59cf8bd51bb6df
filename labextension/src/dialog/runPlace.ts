/** Where the run would work, and what of the user's files it would see: said before it is sent. */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { Preflight } from '../api';
import type { FileList } from './files';

/**
 * The sentences, none where it is as in the editor: the run works in the notebook's own folder, on
 * this machine.
 */
export function describeRunPlace(
  preflight: Preflight,
  files: Pick<FileList, 'isRunIsolated' | 'isPartlyIsolated'>,
  trans: TranslationBundle
): string[] {
  const { inputs, mounts } = preflight;
  const folders = mounts.join(', ');
  if (!files.isRunIsolated) {
    return mounts.length === 0
      ? []
      : [
          trans.__(
            'The run works in the notebook’s own folder. It sees these folders as you do here: %1.',
            folders
          )
        ];
  }
  const sentences = [
    files.isPartlyIsolated
      ? describePartialIsolation(inputs.length, trans)
      : describeIsolation(inputs.length, trans)
  ];
  if (mounts.length > 0) {
    sentences.push(
      trans.__('It sees these folders as you do here: %1.', folders)
    );
  }
  sentences.push(
    trans.__(
      'Files that it writes there come back in a folder beside the result.'
    )
  );
  return sentences;
}

function describeIsolation(
  inputCount: number,
  trans: TranslationBundle
): string {
  return inputCount === 0
    ? trans.__(
        'Isolated: the run works in a scratch folder, and no file goes along with the notebook.'
      )
    : trans._n(
        'Isolated: the run works in a scratch folder, and %1 file goes along with the notebook.',
        'Isolated: the run works in a scratch folder, and %1 files go along with the notebook.',
        inputCount
      );
}

function describePartialIsolation(
  inputCount: number,
  trans: TranslationBundle
): string {
  return inputCount === 0
    ? trans.__(
        'Isolated on some of these flavors or devices: there the run works in a scratch folder, and no file goes along with the notebook.'
      )
    : trans._n(
        'Isolated on some of these flavors or devices: there the run works in a scratch folder, and %1 file goes along with the notebook.',
        'Isolated on some of these flavors or devices: there the run works in a scratch folder, and %1 files go along with the notebook.',
        inputCount
      );
}
