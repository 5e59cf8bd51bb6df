/** A job that is to run again with changes, as the dialog of SUBMIT JOB asks about it. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { JSONValue } from '@lumino/coreutils';

import type { IJournalApi } from '../jobs/client';
import type { Changes, Choices, Job, Submission } from '../jobs/job';
import type { INotebookSource } from '../source';
import type { IJobs } from '../tokens';

/** What the dialog is to know of a job that runs again. */
export async function createRerunSource(
  job: Job,
  jobs: IJobs,
  journalApi: IJournalApi,
  trans: TranslationBundle
): Promise<INotebookSource> {
  const content = await fetchFrozenNotebook(job, journalApi);
  return {
    path: job.notebook,
    note: trans.__(
      'The notebook runs again as it was frozen for %1, not as it is now.',
      job.name
    ),
    initialChoices: choicesOfJob(job),
    ignoresMemory: true,
    takesFiles: false,
    toSubmission: (): Submission => ({ notebook: job.notebook, content }),
    submit: (choices, key) => jobs.rerun(job.name, toChanges(choices), key)
  };
}

/** The notebook that ran, without what it printed: what its parameters are read from. */
async function fetchFrozenNotebook(
  { name }: Job,
  journalApi: IJournalApi
): Promise<Submission['content']> {
  const notebook = (await journalApi.getNotebook(name).catch(() => null)) as {
    cells?: { cell_type?: string; metadata?: { tags?: string[] } }[];
  } | null;
  if (!Array.isArray(notebook?.cells)) {
    return undefined; // It was cleared: the notebook on disk is the best guess.
  }
  const cells = notebook.cells
    .filter(
      ({ metadata }) => !metadata?.tags?.some(tag => RUN_TAGS.includes(tag))
    )
    .map(cell =>
      cell.cell_type === 'code'
        ? { ...cell, outputs: [], execution_count: null }
        : cell
    );
  return { ...notebook, cells };
}

/** Tags of the cells that a run adds. */
const RUN_TAGS = ['injected-parameters', 'papermill-error-cell-tag'];

function choicesOfJob(job: Job): Choices {
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

function toChanges(choices: Choices): Changes {
  // What was frozen stays: inputs and isolation are not to be changed.
  const frozenFields = ['inputs', 'isolated'];
  return Object.fromEntries(
    Object.entries(choices).filter(([name]) => !frozenFields.includes(name))
  );
}
