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
import type { INotebookSource } from '../source';
import type { IJobs } from '../tokens';
import { CannotSubmit, NoConnection, SaveFailed } from '../ui/errors';

/** The drives whose files lie on the server's own disk; `RTC` is older collaborative editing's. */
const LOCAL_DRIVES = ['', 'RTC'];

/** What sources are made with. */
export type SourceServices = {
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
export function createEditorSource(
  context: DocumentRegistry.IContext<INotebookModel>,
  initialChoices: Choices,
  { contents, jobs, trans }: SourceServices
): INotebookSource {
  const notebook = serverPath(context.path, contents, trans);
  const { collaborative } = context.model;
  const needsSave = context.model.dirty && !collaborative;
  if (needsSave && context.canSave === false) {
    throw new CannotSubmit(
      trans.__(
        'This notebook is read-only and has unsaved changes: save a copy first.'
      )
    );
  }
  const ready = needsSave
    ? context.save().catch((error: unknown) => {
        throw error instanceof ServerConnection.NetworkError
          ? new NoConnection(
              trans.__(
                'There is no connection to the server, so the notebook could not be saved. Try again when it is back.'
              )
            )
          : new SaveFailed(String(error));
      })
    : undefined;
  // Asked for each time: autosave may write the notebook once more while the dialog is open.
  const toSubmission = (): Submission => ({
    notebook,
    ...(collaborative ? {} : expectedHash(context.contentsModel))
  });
  const contentFor = memoizeByKey(() =>
    collaborative
      ? { content: context.model.toJSON() as unknown as JSONObject }
      : {}
  );
  return {
    path: notebook,
    note: null,
    initialChoices,
    ready,
    takesFiles: true,
    toSubmission,
    submit: (choices, key) =>
      jobs.submit({ ...toSubmission(), ...contentFor(key), ...choices }, key)
  };
}

/**
 * Stand ready to send a notebook as it is on disk.
 *
 * @throws CannotFreeze where it is not on the server's disk.
 */
export function createFileSource(
  path: string,
  hasUnsavedChanges: boolean,
  initialChoices: Choices,
  { contents, jobs, trans }: SourceServices
): INotebookSource {
  const notebook = serverPath(path, contents, trans);
  return {
    path: notebook,
    note: hasUnsavedChanges
      ? trans.__(
          'It is open with unsaved changes, and what is on disk is sent: save it first if they should count.'
        )
      : null,
    initialChoices,
    takesFiles: true,
    toSubmission: () => ({ notebook }),
    submit: (choices, key) => jobs.submit({ notebook, ...choices }, key)
  };
}

/** What was made for a key stays: sent again it is the same job, although others went on typing. */
function memoizeByKey<T>(compute: () => T): (key: string) => T {
  let cached: { key: string; value: T } | null = null;
  return key => {
    if (cached?.key !== key) {
      cached = { key, value: compute() };
    }
    return cached.value;
  };
}

/** The path as the server knows it. */
function serverPath(
  path: string,
  contents: Contents.IManager,
  trans: TranslationBundle
): string {
  if (!LOCAL_DRIVES.includes(contents.driveName(path))) {
    throw new CannotSubmit(
      trans.__('This notebook is not on the server: copy it there first.')
    );
  }
  return contents.localPath(path);
}

/** What the file's bytes were when the editor last read or wrote them, where the server told. */
function expectedHash(
  file: Omit<Contents.IModel, 'content'> | null
): Pick<Submission, 'expected_sha256'> {
  return file?.hash && file.hash_algorithm === 'sha256'
    ? { expected_sha256: file.hash }
    : {};
}
