/** Puts the parameters of a run into the source's parameters cell, where they can be undone. */
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type { JSONValue } from '@lumino/coreutils';

import type { IJournalApi } from '../jobs/client';
import type { Job } from '../jobs/job';
import { CannotSubmit } from '../ui/errors';
import { openNotebook } from '../ui/openResult';
import { mayBeRounded, requireExact } from '../ui/rounding';
import { showToast } from '../ui/toast';
import { editParameters, findValues, pythonLiteral } from './assignments';

/** The command that does it. */
export const USE_PARAMETERS = 'jupyter-to-job:use-parameters';

/** The tag of the cell with the defaults, and that of the cell which a run adds after it. */
const TAG = 'parameters';
const INJECTED_TAG = 'injected-parameters';

type Services = {
  commands: CommandRegistry;
  journalApi: IJournalApi;
  trans: TranslationBundle;
};

/**
 * Open a job's source, and set its parameters to those of the job.
 *
 * @throws CannotSubmit if the notebook is opened in another page, or how to write the values there
 * is not known.
 */
export async function useParameters(
  job: Job,
  services: Services
): Promise<void> {
  const { commands, trans } = services;
  const panel = await openNotebook(commands, job.notebook, trans);
  if (panel === null) {
    throw new CannotSubmit(
      trans.__(
        'Its source was opened in another page, and nothing was changed there.'
      )
    );
  }
  const written = await writtenOf(job, panel.context.model, services);
  if (written === null) {
    throw new CannotSubmit(
      trans.__(
        'How this notebook’s language writes the values is not known, and no result shows it.'
      )
    );
  }
  const index = putInto(panel.content, written);
  panel.content.activeCellIndex = index;
  await panel.content.scrollToItem(index);
  const text = trans.__(
    'The parameters of %1 are in the parameters cell. Undo there takes them back.',
    job.name
  );
  showToast({ type: 'success', text }, trans);
}

type Model = NotebookPanel['context']['model'];

/** Values as their language writes them, and what joins them to their names there. */
type Written = { literals: Record<string, string>; joint: string };

/**
 * The job's parameters as its language writes them; null if that is not known of all of them.
 *
 * @throws CannotSubmit if the browser has rounded one of them, and the result does not have it.
 */
async function writtenOf(
  job: Job,
  model: Model,
  { journalApi, trans }: Services
): Promise<Written | null> {
  const values = Object.entries(job.parameters) as [string, JSONValue][];
  const isPython = languageOf(model) === 'python';
  if (isPython && !values.some(([, value]) => mayBeRounded(value))) {
    return { literals: pythonLiterals(values), joint: ' = ' };
  }
  const written = await findWritten(job, journalApi);
  const missing = values.filter(
    ([name]) => written?.literals[name] === undefined
  );
  if (!isPython) {
    return missing.length === 0 ? written : null;
  }
  requireExact(missing, trans);
  const literals = { ...pythonLiterals(missing), ...written?.literals };
  return { literals, joint: ' = ' };
}

function pythonLiterals(
  values: readonly [string, JSONValue][]
): Record<string, string> {
  return Object.fromEntries(
    values.map(([name, value]) => [name, pythonLiteral(value)])
  );
}

/** The literals in the result's cell that set the parameters; null if there is none. */
async function findWritten(
  job: Job,
  journalApi: IJournalApi
): Promise<Written | null> {
  const result = (await journalApi
    .getNotebook(job.name, false)
    .catch(() => null)) as {
    cells?: { source: string | string[]; metadata?: { tags?: string[] } }[];
  } | null;
  const cell = result?.cells?.find(({ metadata }) =>
    metadata?.tags?.includes(INJECTED_TAG)
  );
  if (cell === undefined) {
    return null;
  }
  const source = [cell.source].flat().join('');
  const values = [...findValues(source)];
  const literals = Object.fromEntries(
    values.map(([name, { start, end }]) => [name, source.slice(start, end)])
  );
  return { literals, joint: values[0]?.[1].joint ?? ' = ' };
}

function languageOf(model: Model): string {
  const { kernelspec, language_info } = model.sharedModel.metadata;
  const language = kernelspec?.language ?? language_info?.name;
  return typeof language === 'string' ? language.toLowerCase() : 'python';
}

/** Set the values in the parameters cell, which is made if there is none; returns its index. */
function putInto(
  notebook: NotebookPanel['content'],
  { literals, joint }: Written
): number {
  const { sharedModel } = notebook.model!;
  const index = sharedModel.cells.findIndex(cell => {
    const { tags } = cell.metadata as { tags?: unknown };
    return Array.isArray(tags) && tags.includes(TAG);
  });
  if (index === -1) {
    const source = Object.entries(literals)
      .map(([name, literal]) => name + joint + literal)
      .join('\n');
    const metadata = { tags: [TAG] };
    sharedModel.insertCell(0, { cell_type: 'code', source, metadata });
    return 0;
  }
  const cell = sharedModel.getCell(index);
  const edits = editParameters(cell.getSource(), literals, joint);
  cell.transact(() => {
    edits.forEach(({ start, end, text }) =>
      cell.updateSource(start, end, text)
    );
  });
  return index;
}
