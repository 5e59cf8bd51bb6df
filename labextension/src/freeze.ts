/**
 * From the notebook on the screen to one that can be sent: the server freezes what is on its disk,
 * so what is on the screen has to get there first.
 */
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { INotebookModel } from '@jupyterlab/notebook';
import type { Contents } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { Submission } from './job';

/** The drives whose files lie on the server's own disk; `RTC` is older collaborative editing's. */
const OWN_DRIVES = ['', 'RTC'];

/** Why this notebook cannot be sent as it stands, in words for the user. */
export class CannotFreeze extends Error {}

/** The user was asked or told about the save by JupyterLab itself, and there is nothing to add. */
export class SaveRefused extends Error {}

/**
 * Save the notebook if it has unsaved changes, and name what was saved.
 *
 * A collaborative document is saved by the server, never by its editors.
 *
 * @throws CannotFreeze where the server could not see what the user sees.
 * @throws SaveRefused where the save failed or was called off.
 */
export async function freeze(
  context: DocumentRegistry.IContext<INotebookModel>,
  contents: Contents.IManager,
  trans: TranslationBundle
): Promise<Submission> {
  if (!OWN_DRIVES.includes(contents.driveName(context.path))) {
    throw new CannotFreeze(
      trans.__('This notebook is not on the server: copy it there first.')
    );
  }
  const { collaborative, dirty } = context.model;
  if (dirty && !collaborative) {
    if (context.canSave === false) {
      throw new CannotFreeze(
        trans.__(
          'This notebook is read-only and has unsaved changes: save a copy first.'
        )
      );
    }
    await context.save().catch(error => {
      throw new SaveRefused(String(error));
    });
  }
  return {
    notebook: contents.localPath(context.path),
    ...(collaborative ? {} : digest(context.contentsModel))
  };
}

/** What the file's bytes were when the editor last read or wrote them, where the server told. */
function digest(
  file: Omit<Contents.IModel, 'content'> | null
): Pick<Submission, 'expected_sha256'> {
  return file?.hash && file.hash_algorithm === 'sha256'
    ? { expected_sha256: file.hash }
    : {};
}
