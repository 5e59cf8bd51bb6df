/** Several jobs of one submission: values, how they are combined, and what is sent. */
import type { Estimate, Preflight, Wait } from '../src/api';
import { SubmitModel } from '../src/dialog/model';
import { ParameterForm } from '../src/dialog/parameters';
import { parseValues } from '../src/dialog/parameterValues';
import { SeveralPlaces } from '../src/dialog/places';
import { describeRunPlace } from '../src/dialog/runPlace';
import { sweepText } from '../src/dialog/sweepSection';
import { ApiError, type IDialogApi } from '../src/jobs/client';
import type { Choices, Submission } from '../src/jobs/job';
import {
  type Axis,
  combineRuns,
  countRuns,
  standingJobs,
  type SweepFields
} from '../src/jobs/sweep';
import type { INotebookSource } from '../src/source';
import { CATALOG, flavor, job, preflight, TRANS } from './fixtures';

const settle = () => new Promise(resolve => setTimeout(resolve, 5));

function axis(name: string, ...values: number[]): Axis {
  return {
    name,
    runs: values.map(value => ({ parameters: { [name]: value } }))
  };
}

describe('combineRuns', () => {
  const axes = [
    axis('a', 1, 2),
    axis('b', 3, 4),
    { name: 'flavor', runs: [{ flavor: 'small' }, { flavor: 'gpu' }] }
  ];

  it('makes every combination, the last one varies first', () => {
    const runs = combineRuns(axes, 'grid');
    expect(runs).toHaveLength(8);
    expect(countRuns(axes, 'grid')).toBe(8);
    expect(runs.slice(0, 3)).toEqual([
      { parameters: { a: 1, b: 3 }, flavor: 'small' },
      { parameters: { a: 1, b: 3 }, flavor: 'gpu' },
      { parameters: { a: 1, b: 4 }, flavor: 'small' }
    ]);
  });

  it('takes the first ones together, then the second ones', () => {
    expect(combineRuns(axes, 'zip')).toEqual([
      { parameters: { a: 1, b: 3 }, flavor: 'small' },
      { parameters: { a: 2, b: 4 }, flavor: 'gpu' }
    ]);
    const unequal = [axis('a', 1, 2), axis('b', 1, 2, 3)];
    expect(countRuns(unequal, 'zip')).toBeNull();
  });
});

describe('standingJobs', () => {
  it('leaves out what failed and was run again', () => {
    const jobs = [
      job({ name: 'c', rerun_of: 'a', submitted: '3' }),
      job({ name: 'b', state: 'failed', submitted: '2' }),
      job({ name: 'a', state: 'failed', submitted: '1' }),
      job({ name: 'd', rerun_of: 'e', submitted: '5' }),
      job({ name: 'e', state: 'succeeded', submitted: '4' })
    ];
    expect(standingJobs(jobs).map(({ name }) => name)).toEqual([
      'b',
      'c',
      'e',
      'd'
    ]);
  });
});

describe('parseValues', () => {
  it.each([
    ['0.1, 0.01 1e-3', 'float', [0.1, 0.01, 0.001]],
    ['[1, 2]', 'int', [1, 2]],
    ['1\n2\n', 'int', [1, 2]],
    ['1, x', 'float', undefined],
    ['1.5', 'int', undefined],
    ['', 'float', undefined],
    ['true, False', 'bool', [true, false]],
    ['yes', 'bool', undefined],
    ['a, b\n\n c', 'text', ['a, b', ' c']],
    ['[1, 2]\n{"a": 1}', 'json', [[1, 2], { a: 1 }]],
    ['[1,', 'json', undefined],
    ['[1, "x"]', 'any', [1, 'x']],
    ['1\nx', 'any', [1, 'x']],
    ['[]', 'any', undefined],
    ['[1,\n12345678901234567890]', 'any', undefined],
    ['[1,\nx]', 'any', ['[1,', 'x]']]
  ] as const)('reads %j as %s', (text, kind, values) => {
    expect(parseValues(text, kind)).toEqual(values);
  });
});

describe('a parameter with several values', () => {
  function form() {
    const parameters = new ParameterForm(TRANS, { rate: 0.5 });
    const declared = { type: null, help: null };
    parameters.setParameters([
      { ...declared, name: 'rate', default: '0.1', value: 0.1 },
      { ...declared, name: 'fast', default: 'True', value: true }
    ]);
    return parameters;
  }

  it('begins with the one that it had, and ends with the first', () => {
    const parameters = form();
    parameters.setSeveral('rate', true);
    const [field] = parameters.fields!;
    expect(field).toMatchObject({ text: '0.5', isSeveral: true, error: null });
    expect(parameters.axes).toEqual([]); // it is still a single value
    expect(parameters.values).toEqual({ rate: 0.5 });
    parameters.setText('rate', '0.2, 0.3');
    expect(parameters.axes).toEqual([axis('rate', 0.2, 0.3)]);
    expect(parameters.values).toEqual({});
    parameters.setSeveral('rate', false);
    expect(parameters.values).toEqual({ rate: 0.2 });
  });

  it('does not split the one that has lines', () => {
    const sql = 'select 1 -- one\nfrom t';
    const parameters = form();
    const name = 'sql';
    const declared = { type: null, help: null };
    parameters.setParameters([
      { ...declared, name, default: '"…"', value: '' }
    ]);
    parameters.setText(name, sql);
    parameters.setSeveral(name, true);
    const error = 'At least one value.';
    expect(parameters.fields![0]).toMatchObject({ text: '', count: 0, error });
    expect(parameters.hasErrors).toBe(true);
    parameters.setSeveral(name, false);
    expect(parameters.values).toMatchObject({ sql });
  });

  it('says what is wrong, and is reset', () => {
    const parameters = form();
    parameters.setSeveral('fast', true);
    expect(parameters.axes[0]?.runs).toHaveLength(2);
    parameters.setText('fast', 'true, maybe');
    expect(parameters.hasErrors).toBe(true);
    expect(parameters.fields![1]!.error).toContain('true, false');
    parameters.reset('fast');
    expect(parameters.hasErrors).toBe(false);
    expect(parameters.fields![1]).toMatchObject({ isSeveral: false });
  });
});

describe('SeveralPlaces', () => {
  it('has each chosen flavor with its chosen devices, or its usual one', () => {
    const places = new SeveralPlaces('small', 'cpu');
    places.toggleFlavor('gpu');
    const small = { flavor: 'small', device: 'cpu' };
    const t4 = { flavor: 'gpu', device: 't4' };
    expect(places.list(CATALOG)).toEqual([small, t4]);
    expect(places.isFixed('t4', CATALOG)).toBe(true);
    places.toggleDevice('part', CATALOG);
    const part = { flavor: 'gpu', device: 'part' };
    expect(places.list(CATALOG)).toEqual([small, t4, part]);
    expect(places.isFixed('t4', CATALOG)).toBe(false);
    places.toggleDevice('t4', CATALOG);
    expect(places.list(CATALOG)).toEqual([small, part]);
    places.toggleFlavor('small');
    expect(places.list(CATALOG)).toEqual([part]);
  });
});

function waitOf([low, likely, high, runs]: number[]): Wait {
  const run = { low, likely, high, runs } as Estimate;
  const needs = [{ resource: 'cpu', amount: '2', free: '1' }];
  return { time: '2026-11-24T10:00:00Z', needs, before: 2, start: null, run };
}

type Sent = {
  choices: Choices;
  fields: SweepFields;
  key: string;
  plan?: Submission['plan'];
};

async function open(
  answers: (null | ApiError)[] = [],
  changes: (submission: Submission) => Partial<Preflight> = () => ({})
) {
  const asked: Submission[] = [];
  const sent: Sent[] = [];
  const catalog = {
    ...CATALOG,
    flavors: { ...CATALOG.flavors, large: flavor() }
  };
  const declared = { type: null, help: null };
  const answer = preflight({
    plan: { image: 'a' },
    parameters: [
      { ...declared, name: 'lr', default: '1.0', value: 1 },
      { ...declared, name: 'seed', default: '0', value: 0 }
    ]
  });
  const api: IDialogApi = {
    getHealth: () =>
      Promise.resolve({
        status: 'ok' as const,
        version: '1',
        backend: 'local',
        events: true
      }),
    getCatalog: () => Promise.resolve(catalog),
    checkSubmission: (submission): Promise<Preflight> => {
      asked.push(submission);
      const problem = { code: 'no', hint: '', blocking: false };
      const message = `Not on ${submission.flavor}.`;
      const isLarge = submission.flavor === 'large';
      return Promise.resolve({
        ...answer,
        mounts: isLarge ? ['/home'] : ['/data', '/home'],
        wait: waitOf(isLarge ? [20, 24, 30, 3] : [10, 12, 15, 1]),
        problems: isLarge ? [{ ...problem, message }] : [],
        ...changes(submission)
      });
    },
    withdraw: () => Promise.resolve()
  };
  const source: INotebookSource = {
    path: 'train.ipynb',
    note: null,
    initialChoices: {},
    takesFiles: true,
    toSubmission: () => ({ notebook: 'train.ipynb' }),
    submit: () => Promise.reject(new Error('one job')),
    submitSweep: (choices, fields, key, plan) => {
      sent.push({ choices, fields, key, ...(plan && { plan }) });
      const failure = answers.shift();
      return failure
        ? Promise.reject(failure)
        : Promise.resolve({ group: 'night', jobs: [job({ name: 'first' })] });
    }
  };
  const model = new SubmitModel(source, api, TRANS, {}, 0);
  await model.refreshCatalog();
  await settle();
  const vary = (name: string, text: string) =>
    model.change(() => {
      model.parameters.setSeveral(name, true);
      model.parameters.setText(name, text);
    });
  return { model, sent, asked, vary };
}

describe('a sweep in the dialog', () => {
  it('is one submission of all runs, with its group and limit', async () => {
    const { model, sent, vary } = await open();
    expect(model.sweep.isActive).toBe(false);
    vary('lr', '0.1, 0.2, 0.3');
    vary('seed', '1 2');
    model.change(() => {
      Object.assign(model.sweep, { group: ' night ', limit: '4' });
    });
    await settle();
    expect(sweepText(model.sweep, TRANS)).toBe('6 jobs: lr (3) × seed (2)');
    expect((await model.send())?.name).toBe('first');
    const [{ fields, choices, plan }] = sent as [Sent];
    expect(fields.runs).toHaveLength(6);
    expect(fields.runs[1]).toEqual({ parameters: { lr: 0.1, seed: 2 } });
    expect(fields).toMatchObject({ group: 'night', group_limit: 4 });
    expect(choices).toEqual({ flavor: 'small', device: 'cpu' });
    expect(plan).toEqual({ image: 'a' });
  });

  it('asks about each place, and sends no plan for several', async () => {
    const { model, sent, asked, vary } = await open();
    vary('lr', '0.1, 0.2');
    model.change(() => model.sweep.setSeveralPlaces(true));
    model.change(() => model.sweep.several!.toggleFlavor('large'));
    await settle();
    expect(asked.slice(-2).map(each => [each.flavor, each.parameters])).toEqual(
      [
        ['small', { lr: 0.1 }],
        ['large', { lr: 0.1 }]
      ]
    );
    expect(model.problems.map(({ message }) => message)).toEqual([
      'Not on large.'
    ]);
    expect(model.presentPreflight).toMatchObject({
      mounts: ['/home'],
      wait: {
        needs: [],
        before: null,
        run: { low: 10, likely: 21, high: 30, runs: 4 }
      }
    });
    expect(sweepText(model.sweep, TRANS)).toBe('4 jobs: lr (2) × flavor (2)');
    await model.send();
    expect(sent[0]?.fields.runs[3]).toEqual({
      parameters: { lr: 0.2 },
      flavor: 'large',
      device: 'cpu'
    });
    expect(sent[0]?.plan).toBeUndefined();
  });

  it('sends along what the notebook needs where only one place is isolated', async () => {
    const suggested = [{ path: 'helpers.py', size: 5, why: 'import helpers' }];
    const { model, sent } = await open([], asked => ({
      suggested,
      isolated: asked.flavor === 'large'
    }));
    expect(model.choices.inputs).toBeUndefined();
    model.change(() => model.sweep.setSeveralPlaces(true));
    model.change(() => model.sweep.several!.toggleFlavor('large'));
    await settle();
    expect(model.files.isRunIsolated).toBe(true);
    await model.send();
    expect(sent[0]?.choices.inputs).toEqual(['helpers.py']);
  });

  it('says whether it is isolated at all of its places', async () => {
    const inputs = [{ path: 'helpers.py', size: 5 }];
    const { model } = await open([], ({ flavor: name, isolated }) => ({
      inputs,
      isolated: isolated === true || name === 'large'
    }));
    const told = async (change: () => void) => {
      model.change(change);
      await settle();
      return describeRunPlace(model.presentPreflight!, model.files, TRANS)[0];
    };
    await told(() => model.sweep.setSeveralPlaces(true));
    const { several } = model.sweep;
    expect(await told(() => several!.toggleFlavor('large'))).toBe(
      'Isolated on some of these flavors or devices: there the run works in a scratch folder, and 1 file goes along with the notebook.'
    );
    const everywhere =
      'Isolated: the run works in a scratch folder, and 1 file goes along with the notebook.';
    expect(await told(() => several!.toggleFlavor('small'))).toBe(everywhere);
    await told(() => several!.toggleFlavor('small'));
    const isolate = () => (model.files.isIsolated = true);
    expect(await told(isolate)).toBe(everywhere);
  });

  it('is not sent while something of it is wrong', async () => {
    const { model, sent, vary } = await open();
    vary('lr', '1, 2, 3');
    vary('seed', '1, 2');
    model.change(() => (model.sweep.combination = 'zip'));
    expect(model.problems[0]?.message).toContain('lr (3), seed (2)');
    model.change(() => {
      Object.assign(model.sweep, {
        combination: 'grid',
        group: 'a b',
        limit: '0'
      });
    });
    expect(model.problems).toHaveLength(2);
    vary('seed', Array.from({ length: 200 }, (_, index) => index).join());
    expect(model.problems[0]?.message).toContain('600 jobs: 500');
    model.change(() => model.sweep.setSeveralPlaces(true));
    model.change(() => model.sweep.several!.toggleFlavor('small'));
    expect(model.problems[0]?.message).toBe('No flavor is chosen.');
    expect(await model.send()).toBeNull();
    expect(sent).toEqual([]);
  });

  it('keeps its key while nothing changes', async () => {
    const { model, sent, vary } = await open([
      new ApiError('unreachable', ''),
      new ApiError('unreachable', '')
    ]);
    vary('lr', '1, 2');
    await settle();
    await model.send();
    await model.send();
    vary('lr', '1, 2, 3');
    await settle();
    await model.send();
    expect(sent[0]!.key).toBe(sent[1]!.key);
    expect(sent[2]!.key).not.toBe(sent[1]!.key);
  });

  it('takes another key for another single place', async () => {
    const lost = () => new ApiError('unreachable', '');
    const { model, sent, vary } = await open([lost(), lost(), lost()]);
    vary('lr', '1, 2');
    model.change(() => model.sweep.setSeveralPlaces(true));
    await settle();
    await model.send();
    model.change(() => {
      model.sweep.several!.toggleFlavor('large');
      model.sweep.several!.toggleFlavor('small');
    });
    await settle();
    await model.send();
    await model.send();
    expect(sent.map(({ choices }) => choices.flavor)).toEqual([
      'small',
      'large',
      'large'
    ]);
    expect(sent[1]!.key).not.toBe(sent[0]!.key);
    expect(sent[2]!.key).toBe(sent[1]!.key);
  });
});
