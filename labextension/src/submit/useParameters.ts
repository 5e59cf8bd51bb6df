/** Puts the parameters of a run into the source's parameters cell, where they can be undone. */
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type { JSONValue } from '@lumino/coreutils';

import type { IJournalApi } from '../jobs/client';
import type { Job } from '../jobs/job';
import { CannotSubmit } from '../ui/errors';
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
  const widget: unknown = await commands.execute('docmanager:open', {
    path: job.notebook
  });
  const panel = widget as Partial<NotebookPanel> | undefined;
  if (panel?.content === undefined || panel.context === undefined) {
    throw new CannotSubmit(
      trans.__(
        'Its source was opened in another page, and nothing was changed there.'
      )
    );
  }
  await Promise.all([panel.context.ready, panel.revealed]);
  const literals = await literalsOf(job, panel.context.model, services);
  if (literals === null) {
    throw new CannotSubmit(
      trans.__(
        'How this notebook’s language writes the values is not known, and the result is gone.'
      )
    );
  }
  const index = putInto(panel.content, literals);
  panel.content.activeCellIndex = index;
  await panel.content.scrollToItem(index);
  const text = trans.__(
    'The parameters of %1 are in the parameters cell. Undo there takes them back.',
    job.name
  );
  showToast({ type: 'success', text }, trans);
}

type Model = NotebookPanel['context']['model'];

/**
 * The job's parameters as its language writes them; null if that is not known.
 *
 * @throws CannotSubmit if the browser has rounded one of them, and the result does not have it.
 */
async function literalsOf(
  job: Job,
  model: Model,
  { journalApi, trans }: Services
): Promise<Record<string, string> | null> {
  const values = Object.entries(job.parameters) as [string, JSONValue][];
  const isPython = languageOf(model) === 'python';
  if (isPython && !values.some(([, value]) => mayBeRounded(value))) {
    return pythonLiterals(values);
  }
  const written = await findWritten(job, journalApi);
  if (!isPython) {
    return written;
  }
  const missing = values.filter(([name]) => written?.[name] === undefined);
  requireExact(missing, trans);
  return { ...pythonLiterals(missing), ...written };
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
): Promise<Record<string, string> | null> {
  const result = (await journalApi.getNotebook(job.name).catch(() => null)) as {
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
  return Object.fromEntries(
    values.map(([name, { start, end }]) => [name, source.slice(start, end)])
  );
}

function languageOf(model: Model): string {
  const { kernelspec, language_info } = model.sharedModel.metadata;
  const language = kernelspec?.language ?? language_info?.name;
  return typeof language === 'string' ? language.toLowerCase() : 'python';
}

/** Set the values in the parameters cell, which is made if there is none; returns its index. */
function putInto(
  notebook: NotebookPanel['content'],
  literals: Record<string, string>
): number {
  const { sharedModel } = notebook.model!;
  const index = sharedModel.cells.findIndex(cell => {
    const { tags } = cell.metadata as { tags?: unknown };
    return Array.isArray(tags) && tags.includes(TAG);
  });
  if (index === -1) {
    const source = Object.entries(literals)
      .map(([name, literal]) => `${name} = ${literal}`)
      .join('\n');
    const metadata = { tags: [TAG] };
    sharedModel.insertCell(0, { cell_type: 'code', source, metadata });
    return 0;
  }
  const cell = sharedModel.getCell(index);
  const edits = editParameters(cell.getSource(), literals);
  cell.transact(() => {
    edits.forEach(({ start, end, text }) =>
      cell.updateSource(start, end, text)
    );
  });
  return index;
}
