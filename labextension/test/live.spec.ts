/** A run record by record: the cases of `tests/unit/test_fold.py`, and what a page adds to them. */
import type * as nbformat from '@jupyterlab/nbformat';

import type { IJobsApi, JobsQuery } from '../src/jobs/client';
import { Jobs } from '../src/jobs/model';
import { Fold, type JournalRecord } from '../src/live/fold';
import { type Chunk, Follower } from '../src/live/follower';
import { createNotices } from '../src/live/notices';
import {
  MAX_CHARS,
  MAX_OUTPUTS,
  MAX_STREAM_CHARS,
  Outputs
} from '../src/live/outputs';
import { StreamText } from '../src/live/streamText';
import { job, TRANS } from './fixtures';

const cell = (cell_type: string, source: string) => ({
  cell_type,
  source,
  metadata: {},
  ...(cell_type === 'code' && { outputs: [], execution_count: null })
});

const PREPARED: JournalRecord = {
  k: 'prepared',
  cells_total: 2,
  notebook: {
    nbformat: 4,
    nbformat_minor: 5,
    metadata: {},
    cells: [
      cell('markdown', '# T'),
      cell('code', '1'),
      cell('code', ' '),
      cell('code', '2')
    ]
  }
};

function out(text: string, name = 'stdout', i = 1): JournalRecord {
  return { k: 'output', i, output: { output_type: 'stream', name, text } };
}

function shown(text: string, display_id?: string, i = 1): JournalRecord {
  const output = {
    output_type: 'display_data',
    data: { 'text/plain': text },
    metadata: {}
  };
  return { k: 'output', i, output, ...(display_id && { display_id }) };
}

function run(...records: JournalRecord[]): Fold {
  const fold = new Fold(createNotices(TRANS));
  [PREPARED, { k: 'cell_start', i: 1 }, ...records].forEach(record =>
    fold.apply(record)
  );
  return fold;
}

/** What a cell shows, as texts. */
function plain(fold: Fold, index = 1): string[] {
  return fold.cells[index]!.outputs.shown.map(
    ({ text, data }) =>
      (text as string | undefined) ??
      ((data as nbformat.IMimeBundle)['text/plain'] as string)
  );
}

const clear = (wait: boolean, i = 1) => ({ k: 'clear', i, wait });
const update = (text: string) => ({
  k: 'update_display',
  display_id: 'x',
  data: { 'text/plain': text },
  metadata: {}
});

describe('Fold', () => {
  it('merges streams while no other output comes between', () => {
    const fold = run(
      out('a'),
      out('b'),
      out('c', 'stderr'),
      out('d'),
      shown('e'),
      out('f')
    );
    expect(plain(fold)).toEqual(['ab', 'c', 'd', 'e', 'f']);
  });

  it('clears now, and later', () => {
    expect(plain(run(out('a'), clear(false)))).toEqual([]);
    expect(plain(run(out('a'), clear(true)))).toEqual(['a']);
    expect(plain(run(out('a'), clear(true), out('b')))).toEqual(['b']);
    expect(
      plain(run(out('a'), clear(true), clear(false), out('b'), out('c')))
    ).toEqual(['bc']);
  });

  it('updates a display wherever it is shown, and where it still is', () => {
    expect(plain(run(shown('1', 'x'), shown('2', 'x')))).toEqual(['2', '2']);
    expect(plain(run(shown('1', 'x'), shown('2'), update('3')))).toEqual([
      '3',
      '2'
    ]);
    const both = run(shown('1', 'x'), shown('2', 'x', 3), update('9'));
    expect([plain(both), plain(both, 3)]).toEqual([['9'], ['9']]);
    const one = run(
      shown('1', 'x'),
      shown('2', 'x', 3),
      clear(false, 3),
      update('9')
    );
    expect([plain(one), plain(one, 3)]).toEqual([['9'], []]);
  });

  it('says where it was cut, and knows the cells after that', () => {
    const fold = run(out('a'));
    fold.skip(0);
    expect(plain(fold)).toEqual(['a']);
    fold.skip(5 << 20);
    expect(plain(fold)).toEqual([
      'a',
      '[… cut: about 5 MiB of output are not shown here: the result has all …]\n'
    ]);
    expect(fold.cells[1]!.state).toBe('running');
    fold.apply(out('b', 'stdout', 3)); // the start of its cell was skipped
    expect(fold.cells.map(({ state }) => state)).toEqual([
      'idle',
      'done',
      'idle',
      'running'
    ]);
    expect(fold.current).toBe(fold.cells[3]);
    fold.apply({ k: 'start' });
    fold.apply(PREPARED);
    fold.apply(out('b', 'stdout', 3));
    expect(fold.cells[3]!.state).toBe('idle');
  });

  it('says that a journal ends because a gateway takes no more', () => {
    const fold = run(out('a'), { k: 'cut', of: 'attempt', limit: 4 * 2 ** 30 });
    expect(plain(fold)).toEqual([
      'a',
      '[… cut: the journal of this run ends here, over its limit of 4 GiB …]\n'
    ]);
  });

  it('tells how cells stand', () => {
    const fold = run();
    expect(fold.current).toBe(fold.cells[1]);
    fold.apply({ k: 'cell_end', i: 1, ok: true, execution_count: 7 });
    expect(fold.current).toBeNull();
    fold.apply({ k: 'cell_start', i: 3 });
    fold.apply({ k: 'end', state: 'failed', cell: 3, banner: [] });
    expect(fold.cells.map(({ state }) => state)).toEqual([
      'idle',
      'done',
      'idle',
      'failed'
    ]);
    expect(fold.cells[1]!.executionCount).toBe(7);
  });

  it('shows which cell has the error of a run that went on', () => {
    const fold = run();
    fold.apply({ k: 'cell_end', i: 1, ok: true, execution_count: 1 });
    fold.apply({ k: 'cell_start', i: 3 });
    fold.apply({ k: 'cell_end', i: 3, ok: true, execution_count: 2 });
    fold.apply({ k: 'end', state: 'failed', cell: 1, banner: [] });
    expect(fold.cells.map(({ state }) => state)).toEqual([
      'idle',
      'failed',
      'idle',
      'done'
    ]);
  });

  it('shows it where the records of that cell were left out', () => {
    const fold = run();
    fold.apply({ k: 'cell_end', i: 1, ok: true, execution_count: 1 });
    fold.skip(5 << 20);
    fold.apply({ k: 'end', state: 'failed', cell: 3, banner: [] });
    expect(fold.cells[3]!.state).toBe('failed');
  });

  it('inserts the banner where it belongs, once', () => {
    const fold = run(out('a'));
    const banner = [
      [0, cell('markdown', 'It failed')],
      [2, cell('markdown', 'Here')]
    ];
    const end = { k: 'end', state: 'failed', message: 'm', cell: 1, banner };
    fold.apply(end);
    fold.apply(end);
    expect(fold.cells.map(({ cell: { source } }) => source)).toEqual([
      'It failed',
      '# T',
      'Here',
      '1',
      ' ',
      '2'
    ]);
    expect(fold.endState).toBe('failed');
    fold.apply(out('late'));
    expect(plain(fold, 3)).toEqual(['alate']);
  });

  it('says where a journal is damaged, dropped or too long', () => {
    const fold = run(
      { k: 'damaged', bytes: 12 },
      { k: 'omitted', of: 'output', bytes: 3 << 20 },
      { k: 'dropped', i: 1, limit: 1 << 20 },
      { k: 'dropped', i: 1, limit: 1 << 20, bytes: 2048, outputs: 3 }
    );
    const [text] = plain(fold);
    expect(text).toContain('12 B of the journal are damaged');
    expect(text).toContain('an output of 3 MiB is not shown');
    expect(text).toContain('reached its cap of 1 MiB');
    expect(text).toContain('2 KiB of this cell');
  });

  it('shows what belongs to no known cell', () => {
    const fold = new Fold(createNotices(TRANS));
    fold.apply({ k: 'damaged', bytes: 3 });
    fold.apply(out('x', 'stdout', 99));
    expect(fold.cells).toHaveLength(2);
    fold.apply(PREPARED);
    expect(fold.cells).toHaveLength(6);
    expect(plain(fold, 5)).toEqual(['x']);
    fold.apply({ k: 'from a newer runner' });
    fold.apply({ k: 'constructor' });
    fold.apply({});
  });

  it('wants the notebook where that did not come', () => {
    const fold = new Fold(createNotices(TRANS));
    fold.apply({ k: 'omitted', of: 'prepared', bytes: 2 << 20 });
    expect(fold.needsNotebook).toBe(true);
    fold.setNotebook(PREPARED.notebook as nbformat.INotebookContent);
    expect([fold.needsNotebook, fold.cells.length]).toEqual([false, 4]);
  });

  it('begins anew with a second attempt', () => {
    const fold = run(out('a'));
    const { notebook } = fold;
    fold.apply({ k: 'start' });
    fold.apply(PREPARED);
    expect(fold.notebook).not.toBe(notebook);
    expect(plain(fold)).toEqual([]);
  });

  it('makes another object of what has changed, and of nothing else', () => {
    const fold = run(out('a'), shown('b'), out('c'));
    const before = fold.cells[1]!.outputs.shown;
    fold.apply(shown('d', undefined, 3));
    fold.cells[1]!.outputs.shown.forEach((output, index) =>
      expect(output).toBe(before[index])
    );
    fold.apply(out('e'));
    const after = fold.cells[1]!.outputs.shown;
    expect(after[0]).toBe(before[0]);
    expect(after[1]).toBe(before[1]);
    expect(after[2]).not.toBe(before[2]);
  });
});

describe('what is shown of much', () => {
  it('is the end of a long text', () => {
    const fold = run();
    for (let line = 0; line < 20_000; line += 1) {
      fold.apply(out(`line ${line} ${'x'.repeat(40)}\n`));
    }
    const [note, text] = plain(fold) as [string, string];
    expect(note).toContain('of text are not shown here');
    expect(text.length).toBeLessThan(2 * MAX_STREAM_CHARS);
    expect(text.startsWith('line ')).toBe(true);
    expect(text).toContain('line 19999');
  });

  it('is the last of many outputs', () => {
    const fold = run();
    for (let count = 0; count < 3 * MAX_OUTPUTS; count += 1) {
      fold.apply(shown(String(count)));
    }
    const texts = plain(fold);
    expect(texts.length).toBeLessThan(MAX_OUTPUTS + 2);
    expect(texts[0]).toContain('earlier outputs are not shown');
    expect(texts.at(-1)).toBe(String(3 * MAX_OUTPUTS - 1));
  });
});

test.each([
  ['cleared', (outputs: Outputs) => outputs.clear()],
  [
    'let go of',
    (outputs: Outputs) => {
      for (let count = 0; count <= MAX_OUTPUTS; count += 1) {
        outputs.add({ output_type: 'display_data', data: {}, metadata: {} });
      }
    }
  ]
])('an output that was %s is updated no more', (_, lose) => {
  const outputs = new Outputs(createNotices(TRANS));
  const output = { output_type: 'display_data', data: {}, metadata: {} };
  outputs.add(output, 'x');
  lose(outputs);
  outputs.update('x', { data: { 'text/plain': 'new' }, metadata: {} });
  expect(JSON.stringify(outputs.shown)).not.toContain('"new"');
});

test('an update counts for the limit', () => {
  const outputs = new Outputs(createNotices(TRANS));
  const large = 'x'.repeat(MAX_CHARS / 8);
  for (let count = 0; count < 10; count += 1) {
    const output = { output_type: 'display_data', data: {}, metadata: {} };
    outputs.add(output, String(count));
    outputs.update(String(count), {
      data: { 'text/plain': large },
      metadata: {}
    });
  }
  expect(JSON.stringify(outputs.shown).length).toBeLessThan(MAX_CHARS + 4096);
});

describe('StreamText', () => {
  const settled = (...pieces: string[]) => {
    const stream = new StreamText(1000);
    pieces.forEach(piece => stream.append(piece));
    return stream.text;
  };

  it.each([
    [['10 %\r20 %\r100 %'], '100 %'],
    [['abc', '\rX', 'Y\n', 'z'], 'XYc\nz'],
    [['abc\rX\nd'], 'Xbc\nd'],
    [['abc\b\bX'], 'aX'],
    [['a\n\bb'], 'a\nb'],
    [['long line\r', 'short'], 'shortline']
  ])('shows %j as %j', (pieces, text) => {
    expect(settled(...pieces)).toBe(text);
  });

  it('costs what comes', () => {
    const stream = new StreamText(MAX_STREAM_CHARS);
    const began = performance.now();
    for (let count = 0; count < 100_000; count += 1) {
      stream.append(`\r${count} % of all that there is to do`);
    }
    for (let count = 0; count < 3000; count += 1) {
      stream.append('x'.repeat(1000));
    }
    expect(performance.now() - began).toBeLessThan(2000);
    expect(stream.text.length).toBeLessThan(2 * MAX_STREAM_CHARS);
  });
});

describe('Follower', () => {
  const MIB = 1 << 20;
  let now = 0;

  beforeEach(() => {
    jest.spyOn(Date, 'now').mockImplementation(() => now);
  });

  afterEach(() => {
    jest.restoreAllMocks();
  });

  /** A journal of numbers, a byte each, of which ten come at a time. */
  class Server {
    size = 25;
    isFinal = false;
    atATime = 10;
    /** How long an answer takes. */
    milliseconds = 0;
    readonly asked: number[] = [];
    skipped = 0;
    failure: Error | null = null;
    failsBelow = Infinity;

    read = (offset: number, skipped: number): Promise<Chunk> => {
      this.asked.push(offset);
      this.skipped += skipped;
      now += this.milliseconds;
      if (this.failure !== null && offset < this.failsBelow) {
        return Promise.reject(this.failure);
      }
      const from = offset < 0 ? Math.max(this.size + offset, 0) : offset;
      const next = Math.min(from + this.atATime, this.size);
      return Promise.resolve({
        next,
        end: this.isFinal && next === this.size
      });
    };
  }

  const told = (journal: number, state: 'running' | 'succeeded' = 'running') =>
    job({ journal, state });

  function follow(server: Server): { jobs: Jobs; follower: Follower } {
    const jobs = new Jobs({} as IJobsApi);
    const follower = new Follower(job().name, jobs, server.read);
    return { jobs, follower };
  }

  const settle = () => new Promise(resolve => setTimeout(resolve));

  it('reads each byte once, and only when there are some', async () => {
    const server = new Server();
    const { jobs, follower } = follow(server);
    await follower.readMore();
    expect(server.asked).toEqual([0, 10, 20, 25]);
    expect(follower.readState).toBe('waiting');
    jobs.update(told(25));
    await settle();
    expect(server.asked).toHaveLength(4);
    server.size = 31;
    jobs.update(told(31));
    await settle();
    expect(server.asked.slice(4)).toEqual([25]);
  });

  it('skips what it does not keep up with, and says so', async () => {
    const server = new Server();
    server.atATime = MIB;
    server.milliseconds = 1100;
    const { jobs, follower } = follow(server);
    await follower.readMore();
    server.size += 20 * MIB;
    jobs.update(told(server.size));
    await settle();
    expect(server.asked).toEqual([0, 25, 25, 25 + MIB, -MIB]);
    expect(server.skipped).toBe(17 * MIB);
    expect(follower.isTruncated).toBe(true);
    expect(follower.fraction).toBe(1);
    // The end of the job is read as a whole.
    server.size += 20 * MIB;
    jobs.update(told(server.size, 'succeeded'));
    await settle();
    expect(server.skipped).toBe(17 * MIB);
  });

  it('reads a burst whole', async () => {
    const server = new Server();
    server.atATime = MIB;
    const { jobs, follower } = follow(server);
    await follower.readMore();
    server.size += 20 * MIB;
    jobs.update(told(server.size));
    while (follower.readState === 'reading') {
      await settle();
    }
    expect(server.asked).toHaveLength(22);
    expect(follower.isTruncated).toBe(false);
  });

  it('skips nothing while it reads what was there before', async () => {
    const server = new Server();
    server.atATime = MIB;
    server.size = 20 * MIB;
    const { jobs, follower } = follow(server);
    jobs.update(told(server.size));
    while (follower.readState === 'reading') {
      await settle();
    }
    expect(server.asked).toHaveLength(20);
    expect(follower.isTruncated).toBe(false);
  });

  it('skips once for a request that fails', async () => {
    const server = new Server();
    server.atATime = MIB;
    server.milliseconds = 2100;
    const { jobs, follower } = follow(server);
    await follower.readMore();
    server.failure = new Error('no connection');
    server.failsBelow = 0;
    server.size += 20 * MIB;
    jobs.update(told(server.size));
    await settle();
    expect(follower.isTruncated).toBe(false);
    server.failure = null;
    server.size += 1;
    jobs.update(told(server.size));
    await settle();
    expect(server.asked.filter(offset => offset === -MIB)).toHaveLength(2);
    expect(follower.readState).toBe('waiting');
    expect(follower.isTruncated).toBe(true);
  });

  it('ends with the job, and asks no more', async () => {
    const server = new Server();
    server.isFinal = true;
    const { jobs, follower } = follow(server);
    await follower.readMore();
    expect(follower.readState).toBe('ended');
    const { length } = server.asked;
    jobs.update(told(25, 'succeeded'));
    await settle();
    expect(server.asked).toHaveLength(length);
  });

  it('reads what is written after the end', async () => {
    const server = new Server();
    server.isFinal = true;
    const { jobs, follower } = follow(server);
    await follower.readMore();
    expect(follower.readState).toBe('ended');
    const { length } = server.asked;
    server.size = 31;
    jobs.update(told(31, 'succeeded'));
    await settle();
    expect(server.asked.slice(length)).toEqual([25]);
    expect(follower.readState).toBe('ended');
    await follower.readMore();
    expect(server.asked).toHaveLength(length + 1);
  });

  it('finds a job again that the list does not reach any more', async () => {
    const ended = job({ state: 'succeeded', submitted: '1' });
    const newer = job({ name: 'newer', submitted: '2' });
    const jobs = new Jobs({
      list: ({ state }: JobsQuery) =>
        Promise.resolve(
          state === undefined
            ? { jobs: [newer], next: 'older' }
            : { jobs: [], next: null }
        ),
      get: () => Promise.resolve(ended)
    } as unknown as IJobsApi);
    jobs.update(ended);
    const follower = new Follower(ended.name, jobs, new Server().read);
    let isKnown = true;
    follower.changed.connect(() => {
      isKnown = jobs.get(ended.name) !== undefined;
    });
    const removed = jest.fn();
    jobs.removed.connect(removed);
    await jobs.refresh();
    await settle();
    expect(removed).toHaveBeenCalledTimes(1);
    expect(isKnown).toBe(true);
  });

  it('goes on where it was when the connection is back', async () => {
    const server = new Server();
    const { jobs, follower } = follow(server);
    await follower.readMore();
    server.failure = new Error('no connection');
    server.size = 40;
    jobs.update(told(40));
    await settle();
    expect(follower.readState).toBe('lost');
    server.failure = null;
    jobs.update(told(40, 'succeeded'));
    await settle();
    expect(follower.readState).toBe('waiting');
    expect(follower.fraction).toBe(1);
  });
});
