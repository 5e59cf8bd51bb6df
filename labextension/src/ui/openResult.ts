/** Opens a delivered notebook and scrolls to the failed cell. */
import type { Notification } from '@jupyterlab/apputils';
import type { Notebook, NotebookPanel } from '@jupyterlab/notebook';
import { ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';

import { ApiError } from '../jobs/client';
import { type Job, resultPath } from '../jobs/job';
import { showError } from './errors';

/**
 * Open a delivered notebook at the failed cell, if there is one, or show why it cannot be opened.
 */
export async function openResult(
  commands: CommandRegistry,
  path: string,
  trans: TranslationBundle
): Promise<void> {
  try {
    await openAtFailedCell(commands, path);
  } catch (error) {
    showError(toOpenError(error, path, trans), trans, false);
  }
}

/** Open the notebook that was submitted, or show why it cannot be opened. */
export async function openSource(
  commands: CommandRegistry,
  path: string,
  trans: TranslationBundle
): Promise<void> {
  try {
    await commands.execute('docmanager:open', { path });
  } catch (error) {
    showError(toOpenError(error, path, trans), trans, false);
  }
}

/** The button of a notification that opens the job's result, if there is one. */
export function openActions(
  job: Job,
  commands: CommandRegistry,
  trans: TranslationBundle
): Notification.IAction[] {
  const path = resultPath(job);
  if (path === null) {
    return [];
  }
  const callback = () => void openResult(commands, path, trans);
  return [{ label: trans.__('Open'), callback }];
}

/** A notification may outlive its notebook, and JupyterLab's error only says `404 Not Found`. */
function toOpenError(
  error: unknown,
  path: string,
  trans: TranslationBundle
): Error {
  const detail = error instanceof Error ? error.message : String(error);
  return error instanceof ServerConnection.NetworkError
    ? new ApiError('unreachable', detail)
    : new Error(
        trans.__(
          '%1 cannot be opened (%2). If it was moved or deleted, the job can be rerun.',
          path,
          detail
        )
      );
}

async function openAtFailedCell(
  commands: CommandRegistry,
  path: string
): Promise<void> {
  const widget: unknown = await commands.execute('docmanager:open', { path });
  // Notebook 7 opens a new page, where we cannot scroll.
  const panel = widget as Partial<NotebookPanel> | undefined;
  if (panel?.content === undefined || panel.context === undefined) {
    return;
  }
  await Promise.all([panel.context.ready, panel.revealed]);
  const index = findFailedCell(panel.content);
  if (index !== -1) {
    panel.content.activeCellIndex = index;
    await panel.content.scrollToItem(index, 'center');
  }
}

/** The index of the cell that papermill's metadata marks as failed; -1 if there is none. */
function findFailedCell({ widgets }: Notebook): number {
  return widgets.findIndex(({ model }) => {
    const run: unknown = model.getMetadata('papermill');
    return (run as { status?: string } | undefined)?.status === 'failed';
  });
}
