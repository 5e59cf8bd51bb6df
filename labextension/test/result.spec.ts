/** The way back from a result: which cells belong together, and what is copied. */
import { NotebookModel, type NotebookPanel } from '@jupyterlab/notebook';
import type * as nbformat from '@jupyterlab/nbformat';

import {
  copyOutputs,
  isToCopy,
  leftOutText,
  matchNotebook
} from '../src/resultNotebook/bringBack';
import { diffLines } from '../src/resultNotebook/lineDiff';
import {
  codeCells,
  findSource,
  matchCells
} from '../src/resultNotebook/matchCells';
import { resultProvenance } from '../src/resultNotebook/provenance';
import { TRANS } from './fixtures';

const print = (text: string): nbformat.IStream => ({
  output_type: 'stream',
  name: 'stdout',
  text
});

const code = (
  source: string,
  id = '',
  count: number | null = null,
  ...outputs: nbformat.IOutput[]
): nbformat.ICodeCell => ({
  cell_type: 'code',
  source,
  metadata: {},
  outputs,
  execution_count: count,
  ...(id && { id })
});

const text: nbformat.ICell = {
  cell_type: 'markdown',
  source: 'text',
  metadata: {}
};

const notebook = (
  cells: nbformat.ICell[],
  metadata = {}
): nbformat.INotebookContent => ({
  nbformat: 4,
  nbformat_minor: 5,
  metadata,
  cells
});

/** An open notebook, as far as it matters here. */
function open(...cells: nbformat.ICell[]): NotebookPanel {
  const model = new NotebookModel();
  model.fromJSON(notebook(cells));
  return { content: { model } } as unknown as NotebookPanel;
}

const cellsOf = ({ content }: NotebookPanel) =>
  (content.model!.toJSON() as nbformat.INotebookContent)
    .cells as nbformat.ICodeCell[];

describe('cells belong together', () => {
  const kinds = (source: nbformat.ICell[], result: nbformat.ICell[]) =>
    matchCells(codeCells(source), codeCells(result)).map(
      match => `${match.kind} ${match.result?.index ?? '-'}`
    );

  it.each([
    ['by id', [code('1', 'a')], [text, code('1', 'a', 1)], ['same 1']],
    ['by code', [code('1', 'a')], [text, code('1', 'x', 1)], ['same 1']],
    ['though changed', [code('2', 'a')], [code('1', 'a', 1)], ['changed 0']],
    ['though unrun', [code('1', 'a')], [code('1', 'a')], ['unrun 0']],
    ['or not', [code('3', 'c')], [code('1', 'a', 1)], ['new -']],
    [
      'twice the same code',
      [code('1'), code('2'), code('1')],
      [code('1', 'x', 1), code('1', 'y', 2)],
      ['same 0', 'new -', 'same 1']
    ],
    [
      'in another order',
      [code('2', 'b'), code('1', 'a'), text, code('')],
      [code('1', 'a', 1), code('2', 'b', 2)],
      ['same 1', 'same 0']
    ]
  ])('%s', (_, source, result, expected) => {
    expect(kinds(source, result)).toEqual(expected);
  });

  it('finds the source of a failed cell, mended or not', () => {
    const result = codeCells([text, code('1', 'x', 1), text, code('1/0', 'y')]);
    const find = (...cells: nbformat.ICell[]) =>
      findSource(codeCells(cells), result, 3)?.index;
    expect(find(code('1', 'x'), code('1/2', 'y'))).toBe(1);
    expect(find(code('1'), text, code('1/0'), code('2'))).toBe(2);
    expect(find(code('1'), code('1/2'), code('2'))).toBe(1);
    expect(find(code('1'))).toBeUndefined();
  });
});

test('outputs are copied where the code is the same, and one undo takes them back', () => {
  const panel = open(
    code('same', 'a', 3, print('old\n')),
    code('changed now', 'b', 4, print('mine\n')),
    code('added', 'd'),
    code('unrun', 'c')
  );
  const result = notebook([
    code('same', 'a', 1, print('new\n'), {
      ...print('more\n'),
      name: 'stderr'
    }),
    code('changed', 'b', 2, print('theirs\n')),
    code('unrun', 'c')
  ]);
  const before = cellsOf(panel);
  const matches = matchNotebook(panel, result);
  expect(matches.map(isToCopy)).toEqual([true, false, false, false]);
  expect(leftOutText(matches, TRANS)).toBe(
    'Left out: 1 cell has other code now, 1 cell did not run, 1 cell is not in the result.'
  );
  copyOutputs(panel, matches, result);
  const [same, changed] = cellsOf(panel);
  expect(same).toMatchObject({
    execution_count: 1,
    outputs: [{ text: 'new\n' }, { text: 'more\n' }]
  });
  expect(changed).toEqual(before[1]);
  expect(matchNotebook(panel, result).some(isToCopy)).toBe(false);
  panel.content.model!.sharedModel.undo();
  expect(cellsOf(panel)).toEqual(before);
});

test('outputs that are not trusted are not trusted in the source', () => {
  const panel = open(code('1', 'a'), code('2', 'b'));
  const { model } = panel.content;
  [...model!.cells].forEach(cell => (cell.trusted = true));
  const trusted = code('2', 'b', 2, print('x'));
  const result = notebook([
    code('1', 'a', 1, print('x')),
    { ...trusted, metadata: { trusted: true } }
  ]);
  copyOutputs(panel, matchNotebook(panel, result), result);
  expect([...model!.cells].map(cell => cell.trusted)).toEqual([false, true]);
});

test('widgets come with their state', () => {
  const type = 'application/vnd.jupyter.widget-state+json';
  const panel = open(code('1', 'a'));
  const shown: nbformat.IDisplayData = {
    output_type: 'display_data',
    data: { 'application/vnd.jupyter.widget-view+json': { model_id: 'm' } },
    metadata: {}
  };
  const state = { m: { model_name: 'X' } };
  const result = notebook([code('1', 'a', 1, shown)], {
    widgets: { [type]: { state, version_major: 2 } }
  });
  copyOutputs(panel, matchNotebook(panel, result), result);
  expect(panel.content.model!.getMetadata('widgets')).toEqual({
    [type]: { state, version_major: 2 }
  });
});

test('a result is known where it was delivered', () => {
  const model = new NotebookModel();
  const provenance = { job: 'study-1', notebook: 'a/study.ipynb' };
  model.fromJSON(
    notebook([], {
      jupyter_to_job: { provenance },
      papermill: { output_path: 'a/named.ipynb' }
    })
  );
  const known = (path: string) =>
    resultProvenance(model, path, () => 'a/study-1 (2).ipynb')?.job;
  expect(known('a/study-1.ipynb')).toBe('study-1');
  expect(known('a/named.ipynb')).toBe('study-1');
  expect(known('a/study-1 (2).ipynb')).toBe('study-1');
  expect(known('a/kept.ipynb')).toBeUndefined();
  expect(known('a/study.ipynb')).toBeUndefined();
});

test('lines differ', () => {
  const lines = diffLines('a\nb\nc', 'a\nx\nc\nd');
  expect(lines.map(({ kind, text: line }) => kind + line)).toEqual([
    ' a',
    '-b',
    '+x',
    ' c',
    '+d'
  ]);
});
