/** What the dialog remembers of a notebook: the choices of its newest job, and what no job knows. */
import { withDefaults } from '../src/dialog/defaultChoices';
import { ChoiceMemory } from '../src/dialog/memory';
import type { Job } from '../src/jobs/job';
import { DEFAULTS } from '../src/settings/preferences';
import { job } from './fixtures';

const SCOPE = 'http://localhost/:/home/ada';

describe('Memory', () => {
  beforeEach(() => localStorage.clear());

  const known = (...jobs: Job[]) => ({
    all: jobs,
    getNewestOf: (notebook: string) =>
      jobs.find(each => each.notebook === notebook),
    findNewestOf: () => Promise.resolve(job({ flavor: 'found', priority: 2 })),
    loadGroup: () => Promise.resolve()
  });

  it('takes the choices of the newest job, loaded or not', async () => {
    const asked = {
      max_runtime: 60,
      isolated: true,
      inputs: ['data/*.csv'],
      name: 'mine',
      output: null,
      group_limit: null
    };
    const newest = job({
      parameters: { rate: 1 },
      inputs: ['data/a.csv'],
      max_runtime: 50,
      asked
    });
    const memory = new ChoiceMemory(known(newest), SCOPE);
    const loaded = memory.load('study.ipynb');
    expect(loaded.later).toBeNull();
    expect(loaded.now.choices).toEqual({
      flavor: 'small',
      device: 'cpu',
      parameters: { rate: 1 },
      inputs: ['data/*.csv'],
      isolated: true,
      max_runtime: 60,
      name: 'mine'
    });
    const { now, later } = memory.load('other.ipynb');
    expect(now.choices).toBeUndefined();
    expect((await later)!.choices).toEqual({
      flavor: 'found',
      device: 'cpu',
      priority: 2
    });
  });

  it('leaves out what a sweep has varied, loaded or not', async () => {
    const member = (lr: number | null) =>
      job({
        name: `lr-${lr}`,
        group: 'night',
        parameters: { epochs: 5, ...(lr !== null && { lr }) }
      });
    const members = [member(0.1), member(0.2), member(null)];
    const other = job({ group: 'other', parameters: { epochs: 6 } });
    const loaded = new ChoiceMemory(known(...members, other), SCOPE);
    const { now } = loaded.load('study.ipynb');
    expect(now.choices?.parameters).toEqual({ epochs: 5 });

    const all: Job[] = [];
    const findNewestOf = () => Promise.resolve(members[0]!);
    const loadGroup = () => Promise.resolve(void all.push(...members));
    const jobs = { ...known(), all, findNewestOf, loadGroup };
    const { later } = new ChoiceMemory(jobs, SCOPE).load('study.ipynb');
    expect((await later)?.choices?.parameters).toEqual({ epochs: 5 });
  });

  it.each([
    ['flavors', ['small', 'cpu'], ['gpu', 't4'], {}],
    ['flavors of one device', ['small', 'cpu'], ['large', 'cpu'], {}],
    ['devices', ['gpu', 't4'], ['gpu', 'part'], { flavor: 'gpu' }]
  ])('leaves out the %s of a sweep', (_, [flavor, device], other, kept) => {
    const place = { flavor: flavor!, device: device! };
    const [otherFlavor, otherDevice] = other as [string, string];
    const members = [
      job({ name: 'a', group: 'night', ...place }),
      job({
        name: 'b',
        group: 'night',
        flavor: otherFlavor,
        device: otherDevice
      })
    ];
    const memory = new ChoiceMemory(known(...members), SCOPE);
    const { choices } = memory.load('study.ipynb').now;
    expect(choices).toEqual(kept);
  });

  it.each([
    ['one job', ['small'], { flavor: 'gpu', device: 't4' }],
    [
      'a sweep on one flavor',
      ['small', 'small'],
      { flavor: 'gpu', device: 't4' }
    ],
    ['a sweep over flavors', ['small', 'gpu'], {}],
    ['what was deleted', [], { flavor: 'gpu', device: 't4' }]
  ])('begins after a rerun on another flavor of %s', (_, flavors, place) => {
    const runs = flavors.map((flavor, lr) =>
      job({ name: flavor, group: 'night', flavor, parameters: { lr, seed: 1 } })
    );
    const rerun = job({
      name: 'again',
      group: 'night',
      rerun_of: 'small',
      flavor: 'gpu',
      device: 't4',
      parameters: { lr: 0, seed: 2 }
    });
    const memory = new ChoiceMemory(known(rerun, ...runs), SCOPE);
    const { choices } = memory.load('study.ipynb').now;
    const lr = runs.length < 2 && { lr: 0 };
    expect(choices).toEqual({ ...place, parameters: { ...lr, seed: 2 } });
  });

  it('leaves out what a sweep has varied whose runs were deleted', () => {
    const reruns = ['small', 'gpu'].map((flavor, lr) =>
      job({
        name: `again-${lr}`,
        group: 'night',
        rerun_of: `failed-${lr}`,
        flavor,
        parameters: { lr, seed: 1 }
      })
    );
    const memory = new ChoiceMemory(known(...reruns), SCOPE);
    const { choices } = memory.load('study.ipynb').now;
    expect(choices).toEqual({ parameters: { seed: 1 } });
  });

  it.each([
    [undefined, { flavor: 'gpu', device: 't4' }],
    [{ max_runtime: 60 }, { flavor: 'gpu', device: 't4', max_runtime: 60 }],
    [{ flavor: 'small' }, { flavor: 'small' }]
  ])('has the settings’ place where %j has none', (choices, filled) => {
    const preferences = { ...DEFAULTS, flavor: 'gpu', device: 't4' };
    const remembered = choices === undefined ? {} : { choices };
    expect(withDefaults(remembered, preferences).choices).toEqual(filled);
  });

  it('leaves out what a sweep has varied that is loaded in part', async () => {
    const member = (model: string, lr: number) =>
      job({
        name: `${model}-${lr}`,
        group: 'night',
        parameters: { model, lr }
      });
    const all = [member('b', 0.2), member('b', 0.1)];
    const loadGroup = () => Promise.resolve(void all.push(member('a', 0.1)));
    const jobs = {
      ...known(),
      all,
      getNewestOf: () => all[0],
      findNewestOf: () => Promise.resolve(all[0]!),
      loadGroup
    };
    const { later } = new ChoiceMemory(jobs, SCOPE).load('study.ipynb');
    expect(await later).toMatchObject({ choices: { flavor: 'small' } });
    expect((await later)?.choices?.parameters).toBeUndefined();
  });

  it('keeps the defaults that the changed parameters had', () => {
    const sent = job({ notebook: 'a.ipynb' });
    const memory = new ChoiceMemory(known(sent), SCOPE);
    const defaults = { rate: '1e-3' };
    memory.save('a.ipynb', sent, { defaults });
    expect(memory.load('a.ipynb').now.defaults).toEqual(defaults);
    memory.save('a.ipynb', job({ name: 'earlier' }), { defaults });
    expect(memory.load('a.ipynb').now.defaults).toBeUndefined();
  });

  it('knows what another page of this server has sent meanwhile', async () => {
    const jobs = { ...known(), findNewestOf: () => Promise.resolve(arrived) };
    const arrived = job({ name: 'b', notebook: 'a.ipynb' });
    const memory = new ChoiceMemory(jobs, SCOPE);
    const other = new ChoiceMemory(known(), SCOPE);
    expect(memory.load('a.ipynb').now.declined).toEqual([]);
    const defaults = { rate: '1' };
    other.save('a.ipynb', arrived, { declined: ['data.csv'], defaults });
    const { now, later } = memory.load('a.ipynb');
    expect(now.declined).toEqual(['data.csv']);
    expect(await later).toMatchObject({ declined: ['data.csv'], defaults });
    memory.save('b.ipynb', job(), { declined: ['b'] });
    expect(other.load('a.ipynb').now.declined).toEqual(['data.csv']);
    expect(other.load('b.ipynb').now.declined).toEqual(['b']);
    const elsewhere = new ChoiceMemory(jobs, 'http://localhost/:/home/bob');
    expect(elsewhere.load('a.ipynb').now.declined).toEqual([]);
  });

  it('forgets the notebook that was submitted longest ago', () => {
    const memory = new ChoiceMemory(known(), SCOPE);
    for (let count = 0; count < 51; count++) {
      memory.save(`${count}.ipynb`, job(), { declined: [`${count}`] });
    }
    expect(memory.load('0.ipynb').now.declined).toEqual([]);
    expect(memory.load('50.ipynb').now.declined).toEqual(['50']);
  });

  it('does without a store that fails, or holds something else', () => {
    const value = [['a.ipynb'], 7, ['b', { choices: {}, declined: ['c'] }]];
    const key = `jupyter-to-job:choices:${SCOPE}`;
    localStorage.setItem(key, JSON.stringify(value));
    const save = jest.spyOn(Storage.prototype, 'setItem');
    save.mockImplementation(() => {
      throw new Error('full');
    });
    const memory = new ChoiceMemory(known(), SCOPE);
    expect(memory.load('a.ipynb').now.declined).toEqual([]);
    expect(memory.load('b').now.declined).toEqual(['c']);
    memory.save('a.ipynb', job(), { declined: ['b'] });
    expect(memory.load('a.ipynb').now.declined).toEqual(['b']);
    save.mockRestore();
  });
});
