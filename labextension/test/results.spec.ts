/** Results side by side: the matrix, its best run, the plot, and using the parameters of a run. */
import { PromiseDelegate } from '@lumino/coreutils';

import type { Results } from '../src/api';
import type { IJobsApi, JobsQuery } from '../src/jobs/client';
import { Jobs } from '../src/jobs/model';
import { listColumns, type Row, valueText } from '../src/results/columns';
import { draw } from '../src/results/drawing';
import { ResultsModel } from '../src/results/model';
import { createScale } from '../src/results/scales';
import {
  applyEdits,
  editParameters,
  findValues,
  pythonLiteral
} from '../src/submit/assignments';
import { job, TRANS } from './fixtures';

const settle = () => new Promise(resolve => setTimeout(resolve, 20));

function column(
  name: string,
  kind: Results['columns'][number]['kind'],
  changes: Partial<Results['columns'][number]> = {}
) {
  return {
    name,
    kind,
    differs: true,
    field: name,
    pictures: false,
    ...changes
  };
}

const RESULTS: Results = {
  columns: [
    column('job', 'job'),
    column('flavor', 'job', { differs: false }),
    column('state', 'job'),
    column('lr', 'parameter'),
    column('net', 'parameter'),
    column('epochs', 'parameter', { differs: false }),
    column('loss', 'metric'),
    column('curve', 'metric', { pictures: true }),
    column('seconds', 'usage'),
    column('gpu_memory_peak', 'usage'),
    column('result', 'usage')
  ],
  rows: [
    ['a', 0.1, 'deep', 0.5],
    ['b', 0.001, 'wide', 0.25],
    ['c', 0.1, 'wide', null],
    ['d', 10, 'deep', 0.75]
  ].map(([name, lr, net, loss]) => ({
    job: name,
    flavor: 'small',
    state: 'succeeded',
    lr,
    net,
    epochs: 5,
    loss,
    curve: 'image/png',
    seconds: 61,
    gpu_memory_peak: null,
    result: `${name}.ipynb`
  }))
};

async function open(results: Results | Error = RESULTS) {
  let asked = 0;
  const jobs = new Jobs({
    list: () => Promise.resolve({ jobs: [], next: null })
  } as unknown as IJobsApi);
  const getResults = () => {
    asked += 1;
    return results instanceof Error
      ? Promise.reject(results)
      : Promise.resolve(results);
  };
  const model = new ResultsModel('night', jobs, { getResults }, 5);
  await settle();
  return { model, jobs, count: () => asked };
}

const names = ({ rows }: ResultsModel) => rows.map(row => row.job);

describe('ResultsModel', () => {
  it('shows what differs, and what came out', async () => {
    const { model } = await open();
    const shown = () => model.columns.map(({ name }) => name);
    expect(shown()).toEqual(['lr', 'net', 'loss', 'curve', 'seconds']);
    model.set({ showsAll: true });
    expect(shown()).toContain('epochs');
    expect(shown()).not.toContain('result');
  });

  it('sorts, with what is missing at the end', async () => {
    const { model } = await open();
    expect(names(model)).toEqual(['a', 'b', 'c', 'd']);
    model.sortBy('loss');
    expect(names(model)).toEqual(['b', 'a', 'd', 'c']);
    model.sortBy('loss');
    expect(names(model)).toEqual(['d', 'a', 'b', 'c']);
    model.sortBy('net');
    expect(names(model)).toEqual(['a', 'd', 'b', 'c']);
  });

  it('marks the best run: of a loss the smallest, until another is chosen', async () => {
    const { model } = await open();
    expect(model.best).toEqual({ column: 'loss', goal: 'min' });
    expect(model.bestJob).toBe('b');
    model.set({ best: { column: 'loss', goal: 'max' } });
    expect(model.bestJob).toBe('d');
    model.set({ best: { column: 'gone', goal: 'max' } });
    expect(model.bestJob).toBe('b');
  });

  it('has no best run where nothing was recorded', async () => {
    const rows = RESULTS.rows.map(row => ({ ...row, loss: null }));
    const { model } = await open({ ...RESULTS, rows });
    expect([model.best, model.bestJob]).toEqual([null, null]);
    expect(model.plot).toEqual({ x: 'lr', y: 'seconds', series: '' });
    const outcomes = model.outcomeColumns.map(({ name }) => name);
    expect(outcomes).toEqual(['seconds']);
  });

  it('plots the first metric over the first number that is varied', async () => {
    const { model } = await open();
    expect(model.plot).toEqual({ x: 'lr', y: 'loss', series: '' });
    model.setPlot({ series: 'net', x: 'gone' });
    expect(model.plot).toEqual({ x: 'lr', y: 'loss', series: 'net' });
  });

  it('loads again when a job of its group has ended, and only then', async () => {
    const { model, jobs, count } = await open();
    expect(count()).toBe(1);
    jobs.update(job({ name: 'x', group: 'other', state: 'failed' }));
    await settle();
    expect(count()).toBe(1);
    jobs.update(job({ name: 'a', group: 'night', state: 'running' }));
    jobs.update(job({ name: 'b', group: 'night', state: 'succeeded' }));
    await settle();
    expect(count()).toBe(2);
    expect(model.members.map(({ name }) => name)).toEqual(['b', 'a']);
    jobs.update(
      job({ name: 'a', group: 'night', state: 'running', journal: 7 })
    );
    await settle();
    expect(count()).toBe(2);
    model.dispose();
    jobs.update(job({ name: 'a', group: 'night', state: 'succeeded' }));
    await settle();
    expect(count()).toBe(2);
  });

  it('loads its jobs again that the list does not reach any more', async () => {
    const asked: (string | undefined)[] = [];
    const members = ['a', 'b'].map(name =>
      job({ name, group: 'night', state: 'succeeded', submitted: '1' })
    );
    const newer = job({ name: 'newer', submitted: '2' });
    const jobs = new Jobs({
      list: ({ group, state }: JobsQuery) => {
        asked.push(group);
        return Promise.resolve(
          group === undefined && state === undefined
            ? { jobs: [newer], next: 'older' }
            : { jobs: group === undefined ? [] : members, next: null }
        );
      }
    } as unknown as IJobsApi);
    const getResults = () => Promise.resolve(RESULTS);
    const model = new ResultsModel('night', jobs, { getResults }, 5);
    await settle();
    expect(model.members).toHaveLength(2);
    await jobs.refresh();
    expect(model.members).toHaveLength(0);
    await settle();
    expect(model.members).toHaveLength(2);
    expect(asked.filter(Boolean)).toEqual(['night', 'night']);

    const before = model.version;
    await model.refresh();
    await settle();
    expect(model.version).toBe(before + 1); // nothing is drawn twice
    model.dispose();
  });

  it('loads one table at a time, and once more for what came meanwhile', async () => {
    const jobs = new Jobs({
      list: () => Promise.resolve({ jobs: [], next: null })
    } as unknown as IJobsApi);
    const answers: PromiseDelegate<Results>[] = [];
    const getResults = () => {
      answers.push(new PromiseDelegate<Results>());
      return answers.at(-1)!.promise;
    };
    const model = new ResultsModel('night', jobs, { getResults }, 1);
    for (const name of ['a', 'b']) {
      jobs.update(job({ name, group: 'night', state: 'succeeded' }));
      await settle();
    }
    expect(answers).toHaveLength(1);
    answers[0]!.reject(new Error('HTTP 504'));
    await settle();
    expect(model.error).toEqual(new Error('HTTP 504'));
    expect(answers).toHaveLength(2);
    answers[1]!.resolve(RESULTS);
    await settle();
    expect([model.results, model.error]).toEqual([RESULTS, null]);
    expect(answers).toHaveLength(2);
    model.dispose();
  });

  it('keeps an error for the user', async () => {
    const { model } = await open(new Error('gone'));
    expect(model.results).toBeNull();
    expect(model.error).toEqual(new Error('gone'));
  });
});

describe('values and columns', () => {
  it.each([
    ['seconds', 'usage', 61, '1 min 1 s'],
    ['memory_peak', 'usage', 1048576, '1 MiB'],
    ['gpu_utilisation_mean', 'usage', 0.42, '42 %'],
    ['seconds', 'metric', 61, '61'],
    ['loss', 'metric', 0.123456789, '0.123457'],
    ['loss', 'metric', 1234567.89, '1.23457e+06'],
    ['loss', 'metric', 999999.9, '1e+06'],
    ['loss', 'metric', -0.00001234567, '-1.23457e-05'],
    ['day', 'parameter', 20240101, '20240101'],
    ['user_id', 'parameter', 1234567890123456789, '1.23457e+18'],
    ['huge', 'parameter', JSON.parse('1e400') as number, 'Infinity'],
    ['fast', 'parameter', true, 'true'],
    ['fast', 'parameter', null, '']
  ] as const)('shows %s of a %s', (name, kind, value, text) => {
    expect(valueText({ name, kind }, value, TRANS)).toBe(text);
  });

  it('leaves out what no job has', () => {
    const shown = listColumns(RESULTS, false).map(({ name }) => name);
    expect(shown).not.toContain('gpu_memory_peak');
  });
});

describe('the plot', () => {
  const [, , , lr, net, , loss] = RESULTS.columns;

  it('has a point for each run with both values, and lines through means', () => {
    const columns = { x: lr, y: loss, series: net };
    const drawing = draw(RESULTS.rows as Row[], columns, TRANS);
    expect(drawing.points.map(point => point.job)).toEqual(['a', 'b', 'd']);
    expect(drawing.series).toEqual(['deep', 'wide']);
    expect(drawing.points.map(({ series }) => series)).toEqual([0, 1, 0]);
    expect(drawing.lines).toHaveLength(1); // wide has a single place
    expect(drawing.points[0]!.text).toBe('a\nlr: 0.1\nloss: 0.5\nnet: deep');
    const [a, b, d] = drawing.points;
    expect(b!.x).toBeLessThan(a!.x);
    expect(a!.x).toBeLessThan(d!.x);
    const ticks = drawing.xTicks.map(({ text }) => text);
    expect(ticks).toEqual(['0.001', '0.1', '10']); // the values of the sweep
  });

  it('has round ticks where the values have no room beside each other', () => {
    const rows = Array.from({ length: 100 }, (_, index) => ({
      job: String(index),
      lr: index,
      loss: 0.5
    }));
    const columns = { x: lr, y: loss, series: undefined };
    const ticks = draw(rows, columns, TRANS).xTicks.map(({ text }) => text);
    expect(ticks).toEqual(['0', '50', '100']);
  });

  it('has a place for each text', () => {
    const columns = { x: net, y: loss, series: undefined };
    const drawing = draw(RESULTS.rows as Row[], columns, TRANS);
    expect(drawing.xTicks).toEqual([
      { place: 0.25, text: 'deep' },
      { place: 0.75, text: 'wide' }
    ]);
    expect(drawing.lines).toEqual([]);
  });

  it.each([
    [
      [0, 1],
      ['0', '0.5', '1']
    ],
    [[3], ['2.8', '3', '3.2']],
    [
      [-2, 2],
      ['-2', '-1', '0', '1', '2']
    ],
    [
      [1e-5, 1],
      ['1e-5', '1e-4', '0.001', '0.01', '0.1', '1']
    ],
    [[0], ['-1', '-0.5', '0', '0.5', '1']]
  ])('has round ticks for %j', (values, texts) => {
    const { ticks, place } = createScale(values);
    const shown = ticks.map(({ text }) => text);
    texts.forEach(text => expect(shown).toContain(text));
    expect(shown.length).toBeLessThan(12);
    values.forEach(value => {
      expect(place(value)).toBeGreaterThanOrEqual(0);
      expect(place(value)).toBeLessThanOrEqual(1);
    });
  });
});

describe('parameters in a source', () => {
  const SOURCE = `# defaults
lr: float = 0.1  # how fast
layers = [
    64,  # first ]
    32,
]
name = "a # b" # a name
text = '''one
lr = 5
'''
seed=0;
def f(lr=3): pass
if x == 1: y = 2`;

  it('finds values where they are assigned', () => {
    const found = [...findValues(SOURCE)].map(([name, { start, end }]) => [
      name,
      SOURCE.slice(start, end)
    ]);
    expect(found).toEqual([
      ['lr', '0.1'],
      ['layers', '[\n    64,  # first ]\n    32,\n]'],
      ['name', '"a # b"'],
      ['text', "'''one\nlr = 5\n'''"],
      ['seed', '0']
    ]);
  });

  it('changes values in place, and adds what is not assigned', () => {
    const edits = editParameters(SOURCE, {
      lr: '0.5',
      layers: '[8]',
      name: '"a # b"',
      depth: '3'
    });
    const changed = applyEdits(SOURCE, edits);
    expect(changed).toContain('lr: float = 0.5  # how fast\nlayers = [8]\n');
    expect(changed).toContain('name = "a # b" # a name');
    expect(changed.endsWith('\ndepth = 3')).toBe(true);
    expect(applyEdits('', editParameters('', { a: '1' }))).toBe('a = 1');
  });

  it("reads R's assignments, and what is cut off", () => {
    expect([...findValues('rate <- 0.5\nn <- c(1,\n 2)').keys()]).toEqual([
      'rate',
      'n'
    ]);
    expect([...findValues('a = "open\nb = [1,').keys()]).toEqual(['a', 'b']);
    const two = 'lr = 0.1; epochs = 5  # both\n';
    expect(applyEdits(two, editParameters(two, { lr: '0.01' }))).toBe(
      'lr = 0.01; epochs = 5  # both\n'
    );
    const chained = 'x = y = 1\n';
    expect(applyEdits(chained, editParameters(chained, { x: '2' }))).toBe(
      'x = y = 1\nx = 2'
    );
    expect(findValues('a == 1\nb')).toEqual(new Map());
  });

  it.each([
    [null, 'None'],
    [true, 'True'],
    [1e-7, '1e-7'],
    ['a"\n', '"a\\"\\n"'],
    [[1, false, null], '[1, False, None]'],
    [{ a: { b: [] } }, '{"a": {"b": []}}']
  ])('writes %j for Python', (value, literal) => {
    expect(pythonLiteral(value)).toBe(literal);
  });
});
