/** What a delivered notebook says of the job that made it. */
import { PathExt } from '@jupyterlab/coreutils';
import type { INotebookModel } from '@jupyterlab/notebook';
import type { JSONObject } from '@lumino/coreutils';

/** The job, the notebook that was submitted, and the parameters that were set. */
export type Provenance = {
  job: string;
  notebook: string;
  parameters: JSONObject;
};

/** What a notebook says of its job; null if no job made it. */
export function provenanceOf(
  metadata: Readonly<Record<string, unknown>>
): Provenance | null {
  const ours = metadata.jupyter_to_job as
    { provenance?: Partial<Provenance> } | undefined;
  const { job, notebook, parameters } = ours?.provenance ?? {};
  return typeof job === 'string' && typeof notebook === 'string'
    ? { job, notebook, parameters: parameters ?? {} }
    : null;
}

/**
 * What an open notebook says of its job, if it still lies where the job's result was delivered. A
 * copy under another name is a notebook of its own.
 *
 * @param path its path on the server
 * @param delivered the path where the job's result was delivered, if that is known
 */
export function resultProvenance(
  model: INotebookModel,
  path: string,
  delivered: (job: string) => string | null
): Provenance | null {
  // By their keys: a copy of all metadata may have megabytes of widgets.
  const metadata = {
    jupyter_to_job: model.getMetadata('jupyter_to_job') as unknown,
    papermill: model.getMetadata('papermill') as JSONObject | undefined
  };
  const provenance = provenanceOf(metadata);
  if (provenance === null || path === provenance.notebook) {
    return null;
  }
  const { output_path } = metadata.papermill ?? {};
  const isThere =
    path === output_path ||
    path === delivered(provenance.job) ||
    PathExt.basename(path) === `${provenance.job}.ipynb`;
  return isThere ? provenance : null;
}
