/** Opens a delivered notebook and scrolls to the failed cell. */
import { Dialog, type Notification, showDialog } from '@jupyterlab/apputils';
import type { Notebook, NotebookPanel } from '@jupyterlab/notebook';
import { type Contents, ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';

import { ApiError } from '../jobs/client';
import { type Job, resultPath } from '../jobs/job';
import { detailsActions } from './detailsAction';
import { showError } from './errors';
import { formatBytes } from './format';

/** Bytes of a notebook above which the user is asked how to open it. */
export const LARGE = 20_000_000;

const OPEN_WITHOUT_OUTPUTS = 'jupyter-to-job:open-without-outputs';

/** Whose result it is: if it is large, the user may choose to see it without outputs. */
type ResultJob = { name: string; contents?: Contents.IManager };

/** Open a delivered notebook as `openResultOrThrow` does, or show why it cannot be opened. */
export async function openResult(
  commands: CommandRegistry,
  path: string,
  trans: TranslationBundle,
  job?: ResultJob
): Promise<void> {
  try {
    await openResultOrThrow(commands, path, trans, job);
  } catch (error) {
    showError(error, trans, false);
  }
}

/**
 * Open a delivered notebook at the failed cell, if there is one. An error says why it cannot be
 * opened.
 */
export async function openResultOrThrow(
  commands: CommandRegistry,
  path: string,
  trans: TranslationBundle,
  job?: ResultJob
): Promise<void> {
  try {
    const choice = await chooseHow(path, trans, job?.contents);
    if (choice === 'bare') {
      await commands.execute(OPEN_WITHOUT_OUTPUTS, { name: job?.name ?? '' });
    } else if (choice === 'whole') {
      await openAtFailedCell(commands, path);
    }
  } catch (error) {
    throw toOpenError(error, path, trans);
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

/**
 * Open a notebook and wait until its cells are there; null where it opens in another page. An error
 * says why it cannot be opened.
 */
export async function openNotebook(
  commands: CommandRegistry,
  path: string,
  trans: TranslationBundle
): Promise<NotebookPanel | null> {
  try {
    return await openPanel(commands, path);
  } catch (error) {
    throw toOpenError(error, path, trans);
  }
}

/** The buttons of a notification that open the job's result, if there is one, and its details. */
export function openActions(
  job: Job,
  commands: CommandRegistry,
  trans: TranslationBundle,
  contents?: Contents.IManager
): Notification.IAction[] {
  const path = resultPath(job);
  const details = detailsActions(job.name, commands, trans);
  if (path === null) {
    return details;
  }
  const { name } = job;
  const callback = () =>
    void openResult(commands, path, trans, { name, contents });
  return [{ label: trans.__('Open'), callback }, ...details];
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

/** How to open a notebook: what is large may block the page, so the user is asked. */
async function chooseHow(
  path: string,
  trans: TranslationBundle,
  contents?: Contents.IManager
): Promise<'whole' | 'bare' | 'not'> {
  const file = await contents?.get(path, { content: false });
  if (file?.size === undefined || file.size <= LARGE) {
    return 'whole';
  }
  const { button } = await showDialog({
    title: trans.__('Open a Large Notebook?'),
    body: trans.__(
      '%1 has %2. While JupyterLab opens it, the page may stop answering. Without its outputs it opens at once.',
      path,
      formatBytes(file.size)
    ),
    defaultButton: 2,
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.createButton({
        label: trans.__('Open Anyway'),
        actions: ['whole'],
        displayType: 'warn'
      }),
      Dialog.okButton({
        label: trans.__('Open Without Outputs'),
        actions: ['bare']
      })
    ]
  });
  return button.actions.includes('bare')
    ? 'bare'
    : button.actions.includes('whole')
      ? 'whole'
      : 'not';
}

async function openAtFailedCell(
  commands: CommandRegistry,
  path: string
): Promise<void> {
  const panel = await openPanel(commands, path);
  const index = panel === null ? -1 : findFailedCell(panel.content);
  if (panel !== null && index !== -1) {
    panel.content.activeCellIndex = index;
    await panel.content.scrollToItem(index, 'center');
  }
}

async function openPanel(
  commands: CommandRegistry,
  path: string
): Promise<NotebookPanel | null> {
  const widget: unknown = await commands.execute('docmanager:open', { path });
  // Notebook 7 opens a new page, where we cannot scroll.
  const panel = widget as Partial<NotebookPanel> | undefined;
  if (panel?.content === undefined || panel.context === undefined) {
    return null;
  }
  await Promise.all([panel.context.ready, panel.revealed]);
  return widget as NotebookPanel;
}

/** The index of the cell that papermill's metadata marks as failed; -1 if there is none. */
export function findFailedCell({ widgets }: Notebook): number {
  return widgets.findIndex(({ model }) => {
    const run: unknown = model.getMetadata('papermill');
    return (run as { status?: string } | undefined)?.status === 'failed';
  });
}
