/**
 * Makes sources of notebooks. The server freezes the file on its disk, so an open notebook is saved
 * first. A collaborative document is saved by the server and not by its editors, so its content is
 * sent along.
 */
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { INotebookModel } from '@jupyterlab/notebook';
import { type Contents, ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { JSONObject } from '@lumino/coreutils';

import { type Choices, planField, type Submission } from '../jobs/job';
import type { INotebookSource } from '../source';
import type { IJobs } from '../tokens';
import { CannotSubmit, NoConnection, SaveFailed } from '../ui/errors';
import type { NotebookSaver } from './notebookSaver';

/**
 * Drives whose files lie on the server's disk. `RTC` belongs to older versions of jupyter-
 * collaboration.
 */
const LOCAL_DRIVES = ['', 'RTC'];

export type SourceServices = {
  contents: Contents.IManager;
  jobs: IJobs;
  saver: NotebookSaver;
  trans: TranslationBundle;
};

/**
 * Make a source of an open notebook, and save it if it has unsaved changes, after any save of it
 * that is under way. `ready` rejects with SaveFailed if saving failed or was cancelled, and with
 * NoConnection if the server was unreachable, where JupyterLab's message would only say that a
 * fetch failed.
 *
 * @throws CannotSubmit if the notebook on the server cannot be made equal to the one on the screen.
 */
export function createEditorSource(
  context: DocumentRegistry.IContext<INotebookModel>,
  initialChoices: Choices,
  { contents, jobs, saver, trans }: SourceServices
): INotebookSource {
  const notebook = serverPath(context.path, contents, trans);
  const { collaborative } = context.model;
  const needsSave = saver.hasChanges(context) && !collaborative;
  if (needsSave && context.canSave === false) {
    throw new CannotSubmit(
      trans.__(
        'This notebook is read-only and has unsaved changes: save a copy first.'
      )
    );
  }
  // Computed for each request: autosave may save the notebook again while the dialog is open.
  const toSubmission = (): Submission => ({
    notebook,
    ...(collaborative ? {} : expectedHash(context.contentsModel))
  });
  let sent: { key: string; content?: JSONObject } = { key: '' };
  const toRequest = (
    choices: Choices,
    key: string,
    plan: Submission['plan']
  ): Submission => {
    // A repeated request must send the same content, even if others have edited the document.
    if (collaborative && sent.key !== key) {
      const content = context.model.toJSON() as unknown as JSONObject;
      sent = { key, content };
    }
    const { content } = sent;
    return { ...toSubmission(), content, ...choices, ...planField(plan) };
  };
  return {
    path: notebook,
    note: null,
    initialChoices,
    ready: needsSave
      ? save(context, saver, trans)
      : saver.waitForRunning(context),
    takesFiles: true,
    toSubmission,
    submit: (choices, key, plan, hadEnded) =>
      jobs.submit(toRequest(choices, key, plan), key, hadEnded),
    submitSweep: (choices, fields, key, plan) =>
      jobs.submitSweep({ ...toRequest(choices, key, plan), ...fields }, key)
  };
}

/**
 * Make a source of a notebook as it is on disk.
 *
 * @throws CannotSubmit if it is not on the server's disk.
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
    submit: (choices, key, plan, hadEnded) =>
      jobs.submit({ notebook, ...choices, ...planField(plan) }, key, hadEnded),
    submitSweep: (choices, fields, key, plan) =>
      jobs.submitSweep(
        { notebook, ...choices, ...fields, ...planField(plan) },
        key
      )
  };
}

async function save(
  context: DocumentRegistry.IContext<INotebookModel>,
  saver: NotebookSaver,
  trans: TranslationBundle
): Promise<void> {
  await saver.save(context).catch((error: unknown) => {
    if (error instanceof ServerConnection.NetworkError) {
      throw new NoConnection(
        trans.__(
          'There is no connection to the server, so the notebook could not be saved. Try again when it is back.'
        )
      );
    }
    if (error instanceof Error && error.name === 'ModalDuplicateError') {
      throw new CannotSubmit(
        trans.__(
          'JupyterLab asks what to keep of this notebook. Answer that, then submit again.'
        )
      );
    }
    throw new SaveFailed(String(error));
  });
}

/** The path on the server's disk. */
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

/** The file's hash when the editor last read or wrote it, if the server sent one. */
function expectedHash(
  file: Omit<Contents.IModel, 'content'> | null
): Pick<Submission, 'expected_sha256'> {
  return file?.hash && file.hash_algorithm === 'sha256'
    ? { expected_sha256: file.hash }
    : {};
}
