/** Makes a source of a job that runs again with changes. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { JSONExt } from '@lumino/coreutils';

import type { IJournalApi } from '../jobs/client';
import {
  type Changes,
  type Choices,
  choicesOfJob,
  type Job,
  planField,
  type Submission
} from '../jobs/job';
import type { INotebookSource } from '../source';
import type { IJobs } from '../tokens';

/** Make the source of a rerun, with the job's own choices as initial choices. */
export async function createRerunSource(
  job: Job,
  jobs: IJobs,
  journalApi: IJournalApi,
  trans: TranslationBundle
): Promise<INotebookSource> {
  const content = await fetchFrozenNotebook(job, journalApi);
  return {
    path: job.notebook,
    title: trans.__('RERUN JOB'),
    note: noteOf(job, trans),
    initialChoices: choicesOfJob(job),
    ...(job.asked?.output === null &&
      job.output !== null && { resultsFolder: job.output }),
    ignoresMemory: true,
    keepsParameters: true,
    takesFiles: false, // a rerun uses the frozen inputs and their isolation
    toSubmission: (): Submission => ({
      notebook: job.notebook,
      content,
      ...(job.asked?.isolated && { isolated: true })
    }),
    submit: (choices, key, plan) =>
      jobs.rerun(
        job.name,
        { ...changesOf(job, choices), ...planField(plan) },
        key
      )
  };
}

/** What runs again, and where it will be found. */
function noteOf({ name, group }: Job, trans: TranslationBundle): string {
  const frozen = trans.__(
    'The notebook runs again as it was frozen for %1, not as it is now.',
    name
  );
  return group === null
    ? frozen
    : `${frozen} ${trans.__('The new job joins the group %1.', group)}`;
}

/**
 * What a rerun sends. A parameter that stays as it was is left to the server: the browser may have
 * rounded it.
 */
function changesOf(job: Job, choices: Choices): Changes {
  const { parameters = {}, ...others } = choices;
  const own = new Map(Object.entries(choicesOfJob(job).parameters ?? {}));
  const changed = Object.entries(parameters).filter(
    ([name, value]) =>
      !own.has(name) || !JSONExt.deepEqual(value, own.get(name)!)
  );
  return {
    ...(job.priority !== 0 && { priority: 0 }), // unless one is chosen
    ...others,
    ...(changed.length > 0 && { parameters: Object.fromEntries(changed) }),
    ...unsetOf(job, choices)
  };
}

/** What the user removed of the job's choices: the server takes over all else. */
function unsetOf(job: Job, choices: Choices): { unset?: string[] } {
  const initial = choicesOfJob(job);
  const names = Object.keys(initial.parameters ?? {}).filter(
    name => !(name in (choices.parameters ?? {}))
  );
  const unset = [
    ...names.map(name => `parameters.${name}`),
    ...(['max_runtime', 'output', 'name'] as const).filter(
      field => field in initial && !(field in choices)
    )
  ];
  // An older server does not know the field.
  return unset.length > 0 ? { unset } : {};
}

/** Fetch the notebook that ran, without outputs: preflight reads its parameters. */
async function fetchFrozenNotebook(
  { name }: Job,
  journalApi: IJournalApi
): Promise<Submission['content']> {
  const notebook = (await journalApi
    .getNotebook(name, false)
    .catch(() => null)) as {
    cells?: { cell_type?: string; metadata?: { tags?: string[] } }[];
  } | null;
  if (!Array.isArray(notebook?.cells)) {
    return undefined; // Its files were cleared: preflight reads the notebook on disk instead.
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
