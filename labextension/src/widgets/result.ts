/** Opens a result, and shows in it where it failed. */
import type { Notebook, NotebookPanel } from '@jupyterlab/notebook';
import type { CommandRegistry } from '@lumino/commands';

/** Open a delivered notebook; at the cell that failed, if one did. */
export async function openResult(
  commands: CommandRegistry,
  path: string
): Promise<void> {
  const opened: unknown = await commands.execute('docmanager:open', { path });
  // Notebook 7 opens another page, and then there is nothing to scroll here.
  const panel = opened as Partial<NotebookPanel> | undefined;
  if (panel?.content === undefined || panel.context === undefined) {
    return;
  }
  await Promise.all([panel.context.ready, panel.revealed]);
  const failed = failedCell(panel.content);
  if (failed !== -1) {
    panel.content.activeCellIndex = failed;
    await panel.content.scrollToItem(failed, 'center');
  }
}

/** The index of the cell that papermill's conventions call failed; -1: none. */
function failedCell({ widgets }: Notebook): number {
  return widgets.findIndex(({ model }) => {
    const run: unknown = model.getMetadata('papermill');
    return (run as { status?: string } | undefined)?.status === 'failed';
  });
}
