/** Groups: their line in the panel, loading all of their jobs, and acting on all of them. */
import { CommandRegistry } from '@lumino/commands';

import { addGroupCommands, GroupCommandIDs } from '../src/groupCommands';
import { ApiError, type IJobsApi, type JobsQuery } from '../src/jobs/client';
import type { Job } from '../src/jobs/job';
import { Jobs } from '../src/jobs/model';
import { PanelModel } from '../src/panel/model';
import { groupText } from '../src/ui/groupProgress';
import { RegistryPreferences } from '../src/settings/preferences';
import { job, TRANS } from './fixtures';

const settle = () => new Promise(resolve => setTimeout(resolve, 5));

function member(index: number, changes: Partial<Job> = {}): Job {
  return job({
    name: `m-${index}`,
    group: 'night',
    submitted: String(index),
    state: 'succeeded',
    ...changes
  });
}

const shown = ({ rows }: PanelModel) =>
  rows.map(row =>
    row.kind === 'job'
      ? `${row.isMember ? '- ' : ''}${row.job.name}`
      : row.kind === 'sweep'
        ? `${row.group} (${row.jobs.length})`
        : `[${row.notebook}]`
  );

describe('a group in the panel', () => {
  function panel() {
    const jobs = new Jobs({} as IJobsApi);
    [
      job({ name: 'new', submitted: '9' }),
      member(8, { state: 'failed', reason: 'Boom' }),
      job({ name: 'between', submitted: '7' }),
      member(6),
      job({ name: 'alone', submitted: '5', group: 'single' })
    ].forEach(each => jobs.update(each));
    return { model: new PanelModel(jobs), jobs };
  }

  it('is one line at the place of its newest job, and unfolds', () => {
    const { model } = panel();
    expect(shown(model)).toEqual(['new', 'night (2)', 'between', 'alone']);
    model.toggleSweep('night');
    expect(shown(model)).toEqual([
      'new',
      'night (2)',
      '- m-8',
      '- m-6',
      'between',
      'alone'
    ]);
  });

  it('is open where a search finds something in it', () => {
    const { model } = panel();
    model.set({ query: 'boom' });
    expect(shown(model)).toEqual(['night (2)', '- m-8']);
    model.toggleSweep('night');
    expect(shown(model)).toEqual(['night (2)']);
  });

  it('is open in a search although it was opened before', () => {
    const { model } = panel();
    model.toggleSweep('night');
    model.set({ query: 'boom' });
    expect(shown(model)).toEqual(['night (2)', '- m-8']);
    model.toggleSweep('night');
    model.set({ query: 'bo' });
    expect(shown(model)).toEqual(['night (2)', '- m-8']);
    model.set({ query: '' });
    expect(shown(model)).toContain('- m-6');
  });

  it('is one line below its notebook, too', () => {
    const { model } = panel();
    model.set({ isGrouped: true });
    expect(shown(model)).toEqual([
      '[study.ipynb]',
      'new',
      'night (2)',
      'between',
      'alone'
    ]);
  });

  it('counts what stands', () => {
    const jobs = [
      member(1, { state: 'failed' }),
      member(2, { rerun_of: 'm-1', state: 'running' }),
      member(3),
      member(4, { state: 'queued' })
    ];
    expect(groupText(jobs, TRANS)).toBe(
      '3 jobs: 1 succeeded, 1 running, 1 queued'
    );
  });
});

describe('loadGroup', () => {
  it('loads all pages, once, and again after a failure', async () => {
    const asked: JobsQuery[] = [];
    let isBroken = true;
    const jobs = new Jobs({
      list: (query: JobsQuery) => {
        asked.push(query);
        if (isBroken) {
          return Promise.reject(new Error('no'));
        }
        return Promise.resolve(
          query.cursor === undefined
            ? { jobs: [member(2)], next: 'more' }
            : { jobs: [member(1)], next: null }
        );
      }
    } as unknown as IJobsApi);
    await expect(jobs.loadGroup('night')).rejects.toThrow('no');
    isBroken = false;
    await jobs.loadGroup('night');
    await jobs.loadGroup('night');
    expect(asked.slice(1)).toEqual([
      { group: 'night', limit: 500 },
      { group: 'night', limit: 500, cursor: 'more' }
    ]);
    expect(jobs.all.map(({ name }) => name)).toEqual(['m-2', 'm-1']);
  });

  it('keeps the jobs of a sweep that was submitted, and tells of them once', async () => {
    const swept = { group: 'night', jobs: [member(1), member(2)] };
    const jobs = new Jobs({
      submitSweep: () => Promise.resolve(swept)
    } as unknown as IJobsApi);
    const told: unknown[] = [];
    jobs.sweepSubmitted.connect((_, each) => told.push(each));
    jobs.submitted.connect((_, each) => told.push(each));
    await jobs.submitSweep({ notebook: 'study.ipynb', runs: [{}, {}] });
    expect(told).toEqual([swept]);
    expect(jobs.all).toHaveLength(2);
  });
});

describe('the commands of a group', () => {
  function setUp(...members: Job[]) {
    const calls: string[] = [];
    const note = (what: string) => (name: string) => {
      calls.push(`${what} ${name}`);
      return name === 'm-9'
        ? Promise.reject(new Error('no'))
        : Promise.resolve(job({ name: `${name}-again` }));
    };
    const client = {
      list: () => Promise.resolve({ jobs: [], next: null }),
      cancel: note('cancel'),
      rerun: note('rerun'),
      delete: note('delete')
    };
    const jobs = new Jobs(client as unknown as IJobsApi, []);
    members.forEach(each => jobs.update(each));
    const commands = new CommandRegistry();
    const preferences = new RegistryPreferences();
    addGroupCommands({ commands, jobs, preferences, trans: TRANS });
    const run = (id: string, args = {}) =>
      commands.execute(id, { group: 'night', ...args });
    return { client, commands, calls, run };
  }

  it('rerun what failed and was not run again', async () => {
    const { calls, run, commands } = setUp(
      member(1, { state: 'failed' }),
      member(2, { rerun_of: 'm-1' }),
      member(3, { state: 'failed' }),
      member(4, { state: 'cancelled' }),
      member(5, { state: 'failed', group: 'other' })
    );
    const { rerunFailed, cancel } = GroupCommandIDs;
    expect(commands.isVisible(rerunFailed, { group: 'night' })).toBe(true);
    expect(commands.isVisible(cancel, { group: 'night' })).toBe(false);
    expect(await run(rerunFailed)).toBe(1);
    expect(calls).toEqual(['rerun m-3']);
  });

  it('cancel what waits first, and without a question if nothing runs', async () => {
    const { calls, run } = setUp(
      member(1, { state: 'queued' }),
      member(2),
      member(3, { state: 'queued' })
    );
    expect(await run(GroupCommandIDs.cancel)).toBe(2);
    expect(calls).toEqual(['cancel m-3', 'cancel m-1']);
  });

  it('ask before what runs is ended, unless told not to', async () => {
    const { calls, run } = setUp(
      member(1, { state: 'running' }),
      member(2, { state: 'queued' })
    );
    const asked = run(GroupCommandIDs.cancel);
    await settle();
    expect(calls).toEqual([]);
    const dialog = document.querySelector('.jp-Dialog')!;
    expect(dialog.textContent).toContain('Their runs end.');
    dialog.querySelector<HTMLElement>('.jp-mod-reject')!.click();
    expect(await asked).toBe(0);
    await run(GroupCommandIDs.cancel, { ask: false });
    expect(calls).toEqual(['cancel m-2', 'cancel m-1']);
  });

  it('go on after one that fails', async () => {
    const { calls, run } = setUp(
      member(9, { state: 'queued' }),
      member(8, { state: 'queued' })
    );
    expect(await run(GroupCommandIDs.cancel)).toBe(0);
    expect(calls).toEqual(['cancel m-9', 'cancel m-8']);
  });

  it.each([
    [
      'cancel',
      'queued',
      '2 of 4 jobs were not cancelled: It is held. It is not known whether 1 of 4 jobs were cancelled: There is no connection to the server.'
    ],
    [
      'delete',
      'succeeded',
      '2 of 4 jobs were not deleted: It is held. It is not known whether 1 of 4 jobs were deleted: There is no connection to the server.'
    ]
  ] as const)(
    '%s tells what was refused and what was not answered',
    async (action, state, text) => {
      const { client, run } = setUp(
        ...[1, 2, 3, 4].map(n => member(n, { state }))
      );
      const refused = new ApiError('refused', 'It is held.');
      const failures: Record<string, ApiError> = {
        'm-4': new ApiError('unreachable', ''),
        'm-3': refused,
        'm-1': refused
      };
      jest
        .spyOn(client, action)
        .mockImplementation(name =>
          failures[name]
            ? Promise.reject(failures[name])
            : Promise.resolve(job())
        );
      expect(await run(GroupCommandIDs[action], { ask: false })).toBe(0);
      await settle();
      const dialog = document.querySelector('.jp-Dialog')!;
      expect(dialog.querySelector('.jp-Dialog-body')!.textContent).toBe(text);
      dialog.querySelector<HTMLElement>('.jp-mod-accept')!.click();
    }
  );
});
