/** Copies outputs of a result into its open source, cell by cell where the code is the same. */
import type { CodeCellModel } from '@jupyterlab/cells';
import type * as nbformat from '@jupyterlab/nbformat';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import { type JSONObject, JSONExt } from '@lumino/coreutils';

import { codeCells, type Match, matchCells } from './matchCells';

/** The key of the widgets' state in a notebook's metadata, and the type of outputs that need it. */
const WIDGETS = 'widgets';
const WIDGET_STATE = 'application/vnd.jupyter.widget-state+json';
const WIDGET_VIEW = 'application/vnd.jupyter.widget-view+json';

/** The part of JupyterLab's shared notebook that its interface does not name. */
type YNotebook = {
  undoManager: { stopCapturing: () => void; undoStack: readonly unknown[] };
};

/** The newest step that undo takes back; undefined if there is none. */
export function newestStep({ content }: NotebookPanel): unknown {
  const shared = content.model?.sharedModel as Partial<YNotebook> | undefined;
  return shared?.undoManager?.undoStack.at(-1);
}

/** The cells of an open notebook, and what the result has for them. */
export function matchNotebook(
  { content }: NotebookPanel,
  result: nbformat.INotebookContent
): Match[] {
  const { cells } = content.model!.toJSON() as nbformat.INotebookContent;
  return matchCells(codeCells(cells), codeCells(result.cells)).map(match => {
    const model = content.model!.cells.get(match.source.index);
    const { executionState } = model as CodeCellModel;
    return executionState === 'running' ? { ...match, kind: 'running' } : match;
  });
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
 * Copy the outputs of these cells. One undo takes them back: as for other changes of cells,
 * each of them is replaced. JupyterLab 4.6 confuses text when it undoes a change of outputs alone.
 * Outputs that are not trusted in the result are not trusted in the source.
 */
export function copyOutputs(
  { content }: NotebookPanel,
  matches: readonly Match[],
  result: nbformat.INotebookContent
): void {
  const { sharedModel, cells } = content.model!;
  const copies = matches.filter(isToCopy);
  const { activeCellIndex } = content;
  const { undoManager } = sharedModel as Partial<YNotebook>;
  undoManager?.stopCapturing(); // what was changed just before is another step of undo
  sharedModel.transact(() => {
    for (const { source, result: cell } of copies) {
      const model = cells.get(source.index);
      const json = model.sharedModel.toJSON() as nbformat.ICodeCell;
      const metadata = { ...json.metadata };
      delete metadata.trusted;
      if (model.trusted && cell!.isTrusted) {
        metadata.trusted = true;
      }
      sharedModel.deleteCell(source.index);
      sharedModel.insertCell(source.index, {
        ...json,
        metadata,
        outputs: cell!.outputs,
        execution_count: cell!.executionCount
      });
    }
  });
  undoManager?.stopCapturing();
  content.activeCellIndex = activeCellIndex;
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
  const [changed, unrun, added, running] = [
    count('changed'),
    count('unrun'),
    count('new'),
    count('running')
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
      ),
    running > 0 && trans._n('%1 cell runs now', '%1 cells run now', running)
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
