/** A job that is to run again with changes, as the dialog of SUBMIT JOB asks about it. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { JSONValue } from '@lumino/coreutils';

import type { IReader } from '../jobs/client';
import type { Changes, Choices, Job, Submission } from '../jobs/job';
import type { ISource } from '../source';
import type { IJobs } from '../tokens';

/** What the dialog is to know of a job that runs again. */
export async function rerunSource(
  job: Job,
  jobs: IJobs,
  reader: IReader,
  trans: TranslationBundle
): Promise<ISource> {
  const content = await frozen(job, reader);
  return {
    path: job.notebook,
    note: trans.__(
      'The notebook runs again as it was frozen for %1, not as it is now.',
      job.name
    ),
    given: choicesOf(job),
    forgets: true,
    takesFiles: false,
    look: (): Submission => ({ notebook: job.notebook, content }),
    submit: (choices, key) => jobs.rerun(job.name, changesOf(choices), key)
  };
}

/** The notebook that ran, without what it printed: what its parameters are read from. */
async function frozen(
  { name }: Job,
  reader: IReader
): Promise<Submission['content']> {
  const notebook = (await reader.notebook(name).catch(() => null)) as {
    cells?: { cell_type?: string; metadata?: { tags?: string[] } }[];
  } | null;
  if (!Array.isArray(notebook?.cells)) {
    return undefined; // It was cleared: the notebook on disk is the best guess.
  }
  const cells = notebook.cells
    .filter(({ metadata }) => !metadata?.tags?.some(tag => ADDED.includes(tag)))
    .map(cell =>
      cell.cell_type === 'code'
        ? { ...cell, outputs: [], execution_count: null }
        : cell
    );
  return { ...notebook, cells };
}

/** Tags of the cells that a run adds. */
const ADDED = ['injected-parameters', 'papermill-error-cell-tag'];

function choicesOf(job: Job): Choices {
  const { flavor, device, priority } = job;
  const parameters = job.parameters as Record<string, JSONValue>;
  return {
    flavor,
    device,
    ...(Object.keys(parameters).length > 0 && { parameters }),
    ...(job.max_runtime !== null && { max_runtime: job.max_runtime }),
    ...(job.output !== null && { output: job.output }),
    ...(priority !== 0 && { priority })
  };
}

function changesOf(choices: Choices): Changes {
  // What was frozen stays: inputs and isolation are not to be changed.
  const fixed = ['inputs', 'isolated'];
  return Object.fromEntries(
    Object.entries(choices).filter(([name]) => !fixed.includes(name))
  );
}
