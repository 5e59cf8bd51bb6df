/** The way from a result back to its source: to the same cell, and for its outputs. */
import type { NotebookPanel } from '@jupyterlab/notebook';
import type * as nbformat from '@jupyterlab/nbformat';
import type { Contents } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';

import { formatBytes } from '../ui/format';
import { LARGE, openNotebook } from '../ui/openResult';
import { showToast } from '../ui/toast';
import {
  copyOutputs,
  isToCopy,
  leftOutText,
  matchNotebook,
  newestStep
} from './bringBack';
import { confirmCopy } from './bringBackDialog';
import { codeCells, findSource } from './matchCells';
import type { Provenance } from './provenance';

export type ResultServices = {
  commands: CommandRegistry;
  contents: Contents.IManager;
  trans: TranslationBundle;
};

/** Open the source at the cell that became a cell of the result. */
export async function openSourceCell(
  services: ResultServices,
  result: NotebookPanel,
  index: number,
  { notebook }: Provenance
): Promise<void> {
  const { commands, trans } = services;
  const ran = codeCells(cellsOf(result));
  const panel = await openNotebook(commands, notebook, trans);
  if (panel === null) {
    return;
  }
  const cell = findSource(codeCells(cellsOf(panel)), ran, index);
  if (cell === null) {
    const text = trans.__('%1 no longer has this cell.', notebook);
    showToast({ type: 'info', text }, trans);
    return;
  }
  panel.content.activeCellIndex = cell.index;
  await panel.content.scrollToItem(cell.index, 'center');
}

/** Show what differs, ask, and copy the outputs of a result into its open source. */
export async function bringOutputsBack(
  services: ResultServices,
  path: string,
  provenance: Provenance,
  source: NotebookPanel | null
): Promise<void> {
  const { commands, contents, trans } = services;
  const result = await loadResult(path, contents, trans);
  const panel =
    source ?? (await openNotebook(commands, provenance.notebook, trans));
  if (panel === null) {
    const text = trans.__(
      'The source opens in a page of its own: choose Bring Outputs Back in its Run menu.'
    );
    showToast({ type: 'info', text }, trans);
    return;
  }
  const matches = matchNotebook(panel, result);
  if (!(await confirmCopy({ matches, provenance, trans }))) {
    return;
  }
  // The notebook may have been edited meanwhile, by somebody else.
  const current = matchNotebook(panel, result);
  const count = current.filter(isToCopy).length;
  copyOutputs(panel, current, result);
  const copied = trans._n(
    'Outputs of %1 cell were copied.',
    'Outputs of %1 cells were copied.',
    count
  );
  const undo = { label: trans.__('Undo'), callback: createUndo(panel, trans) };
  const text = [copied, leftOutText(current, trans)].join(' ').trim();
  showToast({ type: 'success', text, actions: [undo] }, trans);
}

/** Load a result, unless its outputs would make the notebook too large to work in. */
async function loadResult(
  path: string,
  contents: Contents.IManager,
  trans: TranslationBundle
): Promise<nbformat.INotebookContent> {
  const { size } = await contents.get(path, { content: false });
  if (size !== undefined && size > LARGE) {
    throw new Error(
      trans.__(
        'The result has %1: its outputs would make the notebook too large to work in.',
        formatBytes(size)
      )
    );
  }
  const file = await contents.get(path, { type: 'notebook', content: true });
  return file.content as nbformat.INotebookContent;
}

/** What takes back the newest change, unless the user has changed something since. */
function createUndo(
  panel: NotebookPanel,
  trans: TranslationBundle
): () => void {
  const copying = newestStep(panel);
  return () => {
    if (newestStep(panel) === copying) {
      panel.content.model?.sharedModel.undo();
      return;
    }
    const hint = trans.__(
      'The notebook has changed since. Undo Cell Operation in its Edit menu takes back one change after the other.'
    );
    showToast({ type: 'info', text: hint }, trans);
  };
}

function cellsOf({ content }: NotebookPanel): nbformat.ICell[] {
  return (content.model!.toJSON() as nbformat.INotebookContent).cells;
}
