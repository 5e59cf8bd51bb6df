/**
 * From the notebook on the screen to one that can be sent: the server freezes what is on its disk,
 * so what is on the screen has to get there first. A collaborative document is saved by the server,
 * never by its editors: its content itself is sent.
 */
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { INotebookModel } from '@jupyterlab/notebook';
import { type Contents, ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { JSONObject } from '@lumino/coreutils';

import type { Choices, Submission } from '../jobs/job';
import type { ISource } from '../source';
import type { IJobs } from '../tokens';
import { CannotFreeze, NoServer, SaveRefused } from '../ui/errors';

/** The drives whose files lie on the server's own disk; `RTC` is older collaborative editing's. */
const OWN_DRIVES = ['', 'RTC'];

/** What sources are made with. */
export type Means = {
  contents: Contents.IManager;
  jobs: IJobs;
  trans: TranslationBundle;
};

/**
 * Save an open notebook if it has unsaved changes, and stand ready to send what was saved; ready
 * is rejected with SaveRefused where the save failed or was called off, and with NoServer where
 * there was none: of that JupyterLab says no more than that something could not be fetched.
 *
 * @throws CannotFreeze where the server could not see what the user sees.
 */
export function freeze(
  context: DocumentRegistry.IContext<INotebookModel>,
  given: Choices,
  { contents, jobs, trans }: Means
): ISource {
  const notebook = ownPath(context.path, contents, trans);
  const { collaborative } = context.model;
  const mustSave = context.model.dirty && !collaborative;
  if (mustSave && context.canSave === false) {
    throw new CannotFreeze(
      trans.__(
        'This notebook is read-only and has unsaved changes: save a copy first.'
      )
    );
  }
  const ready = mustSave
    ? context.save().catch((error: unknown) => {
        throw error instanceof ServerConnection.NetworkError
          ? new NoServer(
              trans.__(
                'There is no connection to the server, so the notebook could not be saved. Try again when it is back.'
              )
            )
          : new SaveRefused(String(error));
      })
    : undefined;
  // Asked for each time: autosave may write the notebook once more while the dialog is open.
  const look = (): Submission => ({
    notebook,
    ...(collaborative ? {} : digest(context.contentsModel))
  });
  const content = oncePerKey(() =>
    collaborative
      ? { content: context.model.toJSON() as unknown as JSONObject }
      : {}
  );
  return {
    path: notebook,
    note: null,
    given,
    ready,
    takesFiles: true,
    look,
    submit: (choices, key) =>
      jobs.submit({ ...look(), ...content(key), ...choices }, key)
  };
}

/**
 * Stand ready to send a notebook as it is on disk.
 *
 * @throws CannotFreeze where it is not on the server's disk.
 */
export function asOnDisk(
  path: string,
  hasUnsavedChanges: boolean,
  given: Choices,
  { contents, jobs, trans }: Means
): ISource {
  const notebook = ownPath(path, contents, trans);
  return {
    path: notebook,
    note: hasUnsavedChanges
      ? trans.__(
          'It is open with unsaved changes, and what is on disk is sent: save it first if they should count.'
        )
      : null,
    given,
    takesFiles: true,
    look: () => ({ notebook }),
    submit: (choices, key) => jobs.submit({ notebook, ...choices }, key)
  };
}

/** What was made for a key stays: sent again it is the same job, although others went on typing. */
function oncePerKey<T>(make: () => T): (key: string) => T {
  let made: { key: string; value: T } | null = null;
  return key => {
    if (made?.key !== key) {
      made = { key, value: make() };
    }
    return made.value;
  };
}

/** The path as the server knows it. */
function ownPath(
  path: string,
  contents: Contents.IManager,
  trans: TranslationBundle
): string {
  if (!OWN_DRIVES.includes(contents.driveName(path))) {
    throw new CannotFreeze(
      trans.__('This notebook is not on the server: copy it there first.')
    );
  }
  return contents.localPath(path);
}

/** What the file's bytes were when the editor last read or wrote them, where the server told. */
function digest(
  file: Omit<Contents.IModel, 'content'> | null
): Pick<Submission, 'expected_sha256'> {
  return file?.hash && file.hash_algorithm === 'sha256'
    ? { expected_sha256: file.hash }
    : {};
}
