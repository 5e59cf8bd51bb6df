/** Copies outputs of a result into its open source, cell by cell where the code is the same. */
import type { ICodeCellModel } from '@jupyterlab/cells';
import type * as nbformat from '@jupyterlab/nbformat';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import { type JSONObject, JSONExt } from '@lumino/coreutils';

import { codeCells, type Match, matchCells } from './matchCells';

/** The key of the widgets' state in a notebook's metadata, and the type of outputs that need it. */
const WIDGETS = 'widgets';
const WIDGET_STATE = 'application/vnd.jupyter.widget-state+json';
const WIDGET_VIEW = 'application/vnd.jupyter.widget-view+json';

/** The cells of an open notebook, and what the result has for them. */
export function matchNotebook(
  { content }: NotebookPanel,
  result: nbformat.INotebookContent
): Match[] {
  const { cells } = content.model!.toJSON() as nbformat.INotebookContent;
  return matchCells(codeCells(cells), codeCells(result.cells));
}

/** Whether copying the outputs of a cell changes something. */
export function isToCopy({ kind, source, result }: Match): boolean {
  return (
    kind === 'same' &&
    !(
      source.executionCount === result!.executionCount &&
      JSONExt.deepEqual(source.outputs, result!.outputs)
    )
  );
}

/**
 * Copy the outputs of these cells. One undo takes all of it back. Outputs that are not trusted in
 * the result are not trusted in the source.
 */
export function copyOutputs(
  { content }: NotebookPanel,
  matches: readonly Match[],
  result: nbformat.INotebookContent
): void {
  const { sharedModel, cells } = content.model!;
  const copies = matches.filter(isToCopy);
  for (const { source, result: cell } of copies) {
    if (!cell!.isTrusted) {
      cells.get(source.index).trusted = false;
    }
  }
  sharedModel.transact(() => {
    for (const { source, result: cell } of copies) {
      const shared = (cells.get(source.index) as ICodeCellModel).sharedModel;
      shared.setOutputs(cell!.outputs);
      shared.execution_count = cell!.executionCount;
    }
  });
  if (copies.some(({ result: cell }) => cell!.outputs.some(isWidget))) {
    copyWidgets(content.model!, result);
  }
}

/** A word on the cells that were left out, and why; empty if none was. */
export function leftOutText(
  matches: readonly Match[],
  trans: TranslationBundle
): string {
  const count = (kind: Match['kind']) =>
    matches.filter(match => match.kind === kind).length;
  const [changed, unrun, added] = [
    count('changed'),
    count('unrun'),
    count('new')
  ];
  const parts = [
    changed > 0 &&
      trans._n(
        '%1 cell has other code now',
        '%1 cells have other code now',
        changed
      ),
    unrun > 0 && trans._n('%1 cell did not run', '%1 cells did not run', unrun),
    added > 0 &&
      trans._n(
        '%1 cell is not in the result',
        '%1 cells are not in the result',
        added
      )
  ].filter(part => part !== false);
  return parts.length === 0
    ? ''
    : trans.__('Left out: %1.', parts.join(trans.__(', ')));
}

function isWidget(output: nbformat.IOutput): boolean {
  return WIDGET_VIEW in ((output.data ?? {}) as JSONObject);
}

/** Add the models of the result's widgets to those of the source. */
function copyWidgets(
  { sharedModel }: NonNullable<NotebookPanel['content']['model']>,
  result: nbformat.INotebookContent
): void {
  type Widgets = Record<string, { state?: JSONObject }>;
  const theirs = (result.metadata[WIDGETS] ?? {}) as Widgets;
  const ours = (sharedModel.getMetadata(WIDGETS) ?? {}) as Widgets;
  const state = {
    ...ours[WIDGET_STATE]?.state,
    ...theirs[WIDGET_STATE]?.state
  };
  sharedModel.setMetadata(WIDGETS, {
    ...ours,
    [WIDGET_STATE]: { ...theirs[WIDGET_STATE], state }
  } as unknown as JSONObject);
}
