/** What the dialog remembers of a notebook: the choices of its newest job, and what no job knows. */
import { ChoiceMemory } from '../src/dialog/memory';
import type { Job } from '../src/jobs/job';
import { job } from './fixtures';

describe('Memory', () => {
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
      output: null
    };
    const newest = job({
      parameters: { rate: 1 },
      inputs: ['data/a.csv'],
      max_runtime: 50,
      asked
    });
    const memory = new ChoiceMemory(known(newest), null);
    const loaded = await memory.load('study.ipynb');
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
    const { now, later } = await memory.load('other.ipynb');
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
    const loaded = new ChoiceMemory(known(...members, other), null);
    const { now } = await loaded.load('study.ipynb');
    expect(now.choices?.parameters).toEqual({ epochs: 5 });

    const all: Job[] = [];
    const findNewestOf = () => Promise.resolve(members[0]!);
    const loadGroup = () => Promise.resolve(void all.push(...members));
    const jobs = { ...known(), all, findNewestOf, loadGroup };
    const { later } = await new ChoiceMemory(jobs, null).load('study.ipynb');
    expect((await later)?.choices?.parameters).toEqual({ epochs: 5 });
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
    const { later } = await new ChoiceMemory(jobs, null).load('study.ipynb');
    expect(await later).toMatchObject({ choices: { flavor: 'small' } });
    expect((await later)?.choices?.parameters).toBeUndefined();
  });

  it('keeps the defaults that the changed parameters had', async () => {
    const sent = job({ notebook: 'a.ipynb' });
    const memory = new ChoiceMemory(known(sent), null);
    const defaults = { rate: '1e-3' };
    await memory.save('a.ipynb', sent, { defaults });
    expect((await memory.load('a.ipynb')).now.defaults).toEqual(defaults);
    await memory.save('a.ipynb', job({ name: 'earlier' }), { defaults });
    expect((await memory.load('a.ipynb')).now.defaults).toBeUndefined();
  });

  it('forgets the notebook that was submitted longest ago', async () => {
    const memory = new ChoiceMemory(known(), null);
    for (let count = 0; count < 51; count++) {
      await memory.save(`${count}.ipynb`, job(), { declined: [`${count}`] });
    }
    expect((await memory.load('0.ipynb')).now.declined).toEqual([]);
    expect((await memory.load('50.ipynb')).now.declined).toEqual(['50']);
  });

  it('does without a store that fails, or holds something else', async () => {
    const broken = {
      fetch: () =>
        Promise.resolve([
          ['a.ipynb'],
          7,
          ['b', { choices: {}, declined: ['c'] }]
        ]),
      save: () => Promise.reject(new Error('full'))
    };
    jest.spyOn(console, 'warn').mockImplementation(() => undefined);
    const memory = new ChoiceMemory(known(), broken as never);
    expect((await memory.load('a.ipynb')).now.declined).toEqual([]);
    expect((await memory.load('b')).now.declined).toEqual(['c']);
    await memory.save('a.ipynb', job(), { declined: ['b'] });
    expect((await memory.load('a.ipynb')).now.declined).toEqual(['b']);
  });
});
