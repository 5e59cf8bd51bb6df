/**
 * Makes the folder of results that the settings name when it is missing. A submission names a
 * folder that is there, so it is made just before, and preflight is not asked about it.
 */
import { PathExt } from '@jupyterlab/coreutils';
import type { Contents } from '@jupyterlab/services';

import type { IDialogApi } from '../jobs/client';
import type { Submission } from '../jobs/job';
import type { INotebookSource } from '../source';

/** Do not ask preflight about this folder, which may be made only when the job is sent. */
export function withoutFolder(api: IDialogApi, folder: string): IDialogApi {
  return {
    getHealth: () => api.getHealth(),
    getCatalog: () => api.getCatalog(),
    withdraw: key => api.withdraw(key),
    checkSubmission: ({ output, ...submission }: Submission) =>
      api.checkSubmission(
        output === undefined || isFolder(output, folder)
          ? submission
          : { ...submission, output }
      )
  };
}

/** Make this folder before a submission that names it. */
export function withFolder(
  source: INotebookSource,
  folder: string,
  contents: Contents.IManager
): INotebookSource {
  const submit: INotebookSource['submit'] = async (choices, key, plan) => {
    if (isFolder(choices.output ?? '', folder)) {
      await makeFolder(contents, folder);
      return source.submit({ ...choices, output: folder }, key, plan);
    }
    return source.submit(choices, key, plan);
  };
  return Object.assign(Object.create(source) as INotebookSource, { submit });
}

function isFolder(output: string, folder: string): boolean {
  return output.replace(/\/+$/, '') === folder.replace(/\/+$/, '');
}

/** Make a folder and those above it, as far as they are missing. */
export async function makeFolder(
  contents: Contents.IManager,
  folder: string
): Promise<void> {
  const path = folder.replace(/\/+$/, '');
  const isThere = await contents.get(path, { content: false }).then(
    () => true,
    () => false
  );
  if (path === '' || isThere) {
    return;
  }
  await makeFolder(contents, PathExt.dirname(path));
  await contents.save(path, { type: 'directory', path }).catch(error => {
    // Another page may have made it meanwhile; if not, the server says what is wrong.
    console.warn(`jupyter-to-job: ${path} was not made`, error);
  });
}
