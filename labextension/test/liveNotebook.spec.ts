/** The live notebook shows the same, in whichever pieces the records arrive. */
import type { CodeEditor } from '@jupyterlab/codeeditor';
import {
  RenderMimeRegistry,
  standardRendererFactories
} from '@jupyterlab/rendermime';
import { nullTranslator } from '@jupyterlab/translation';

import { Fold, type JournalRecord } from '../src/live/fold';
import { LiveNotebook } from '../src/live/liveNotebook';
import { createNotices } from '../src/live/notices';
import { TRANS } from './fixtures';

const code = (source: string) => ({
  cell_type: 'code',
  id: source,
  source,
  metadata: {},
  outputs: [],
  execution_count: null
});
const markdown = (id: string) => ({
  cell_type: 'markdown',
  id,
  source: id,
  metadata: {}
});

const print = (i: number, text: string, name = 'stdout') => ({
  k: 'output',
  i,
  output: { output_type: 'stream', name, text }
});
const display = (i: number, text: string, display_id?: string) => ({
  k: 'output',
  i,
  display_id,
  output: {
    output_type: 'display_data',
    data: { 'text/plain': text },
    metadata: {}
  }
});
const clear = (i: number, wait: boolean) => ({ k: 'clear', i, wait });

/** A run with outputs of every kind, which fails: as the runner writes it. */
const RECORDS: JournalRecord[] = [
  { k: 'start' },
  {
    k: 'prepared',
    notebook: {
      nbformat: 4,
      nbformat_minor: 5,
      metadata: {},
      cells: [markdown('title'), code('a'), code('b'), code('never')]
    }
  },
  { k: 'cell_start', i: 1 },
  print(1, 'line\n'),
  print(1, '10 %'),
  print(1, '\r20 %'),
  print(1, 'warning', 'stderr'),
  clear(1, true),
  display(1, 'shown', 'x'),
  print(1, 'after'),
  clear(1, false),
  print(1, 'printed'),
  display(1, 'other', 'x'),
  print(1, 'again'),
  { k: 'cell_end', i: 1, ok: true, execution_count: 1 },
  { k: 'cell_start', i: 2 },
  {
    k: 'update_display',
    display_id: 'x',
    data: { 'text/plain': 'updated' },
    metadata: {}
  },
  {
    k: 'output',
    i: 2,
    output: { output_type: 'error', ename: 'E', evalue: 'v', traceback: ['t'] }
  },
  { k: 'cell_end', i: 2, ok: false, execution_count: 2 },
  {
    k: 'end',
    state: 'failed',
    cell: 2,
    banner: [
      [2, markdown('here')],
      [0, markdown('failed')]
    ]
  }
];

/** What the notebook shows after the records came in these pieces. */
function show(...pieces: JournalRecord[][]): unknown {
  const fold = new Fold(createNotices(TRANS));
  const notebook = new LiveNotebook(fold, {
    rendermime: new RenderMimeRegistry({
      initialFactories: standardRendererFactories
    }),
    editorServices: {
      factoryService: {
        newInlineEditor: () => ({}) as CodeEditor.IEditor,
        newDocumentEditor: () => ({}) as CodeEditor.IEditor
      },
      mimeTypeService: {
        getMimeTypeByLanguage: () => 'text/plain',
        getMimeTypeByFilePath: () => 'text/plain'
      }
    },
    translator: nullTranslator
  });
  for (const records of pieces) {
    records.forEach(record => fold.apply(record));
    notebook.sync(true);
  }
  const { cells } = notebook.model!.toJSON() as { cells: unknown };
  notebook.dispose();
  return cells;
}

test('a run shows what it made', () => {
  expect(show(RECORDS)).toMatchObject([
    { id: 'failed' },
    { id: 'title' },
    {
      id: 'a',
      execution_count: 1,
      outputs: [
        { text: 'printed' },
        { data: { 'text/plain': 'updated' } },
        { text: 'again' }
      ]
    },
    { id: 'here' },
    { id: 'b', execution_count: 2, outputs: [{ ename: 'E' }] },
    { id: 'never', execution_count: null, outputs: [] }
  ]);
});

const CUTS = RECORDS.map((_, index) => index);

test.each(CUTS)('it shows the same if the records are cut at %i', cut => {
  expect(show(RECORDS.slice(0, cut), RECORDS.slice(cut))).toEqual(
    show(RECORDS)
  );
});

test('it shows the same if the records come one by one', () => {
  expect(show(...RECORDS.map(record => [record]))).toEqual(show(RECORDS));
});
