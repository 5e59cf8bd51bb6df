/** What the panel shows, and how it says it. */
import { ReactWidget } from '@jupyterlab/ui-components';
import { CommandRegistry } from '@lumino/commands';
import { Widget } from '@lumino/widgets';
import { createElement } from 'react';

import type { IJobsApi } from '../src/jobs/client';
import { formatCommandLine } from '../src/jobs/commandLine';
import type { Job } from '../src/jobs/job';
import { Jobs } from '../src/jobs/model';
import { announceChanges } from '../src/panel/announcer';
import { PanelModel } from '../src/panel/model';
import { JobsPanel } from '../src/panel/panel';
import { JobRow } from '../src/panel/row';
import {
  noteText,
  progressText,
  statusText,
  usageText
} from '../src/ui/statusText';
import { job, overdueSoon, TRANS, until } from './fixtures';

function panel(...known: Partial<Job>[]): { model: PanelModel; jobs: Jobs } {
  const jobs = new Jobs({} as IJobsApi);
  known.forEach((each, index) =>
    jobs.update(
      job({ name: `j-${index}`, submitted: String(9 - index), ...each })
    )
  );
  return { model: new PanelModel(jobs), jobs };
}

const shown = ({ rows }: PanelModel) =>
  rows.map(row =>
    row.kind === 'job'
      ? row.job.name
      : `[${row.kind === 'group' ? row.notebook : row.group}]`
  );

describe('PanelModel', () => {
  it('filters by state and by words in whatever place', () => {
    const { model } = panel(
      { state: 'running', notebook: 'data/train.ipynb', flavor: 'gpu-1' },
      { state: 'queued', notebook: 'data/clean.ipynb' },
      { state: 'failed', reason: 'OutOfMemory', notebook: 'data/train.ipynb' }
    );
    expect(shown(model)).toEqual(['j-0', 'j-1', 'j-2']);
    model.set({ query: ' TRAIN  gpu' });
    expect(shown(model)).toEqual(['j-0']);
    model.set({ query: 'outofmemory' });
    expect(shown(model)).toEqual(['j-2']);
    model.set({ query: '' });
    model.set({ filter: 'waiting' });
    expect(shown(model)).toEqual(['j-1']);
    expect(model.isFiltered).toBe(true);
  });

  it('reveals a job, whatever hides it', () => {
    const { model } = panel({ notebook: 'a.ipynb' }, { notebook: 'b.ipynb' });
    model.set({ query: 'b.ipynb', filter: 'failed', isGrouped: true });
    model.toggleGroup('a.ipynb');
    model.reveal('no-such-job');
    expect(model.revealedKey).toBeNull();
    model.reveal('j-0');
    expect(model.revealedKey).toBe('j-0');
    expect(shown(model)).toContain('j-0');
  });

  it('reveals a job of a group, which it opens', () => {
    const { model } = panel({ group: 'night' }, { group: 'night' });
    expect(shown(model)).toEqual(['[night]']);
    for (const name of ['j-1', 'j-0']) {
      model.reveal(name);
      expect(shown(model)).toEqual(['[night]', 'j-0', 'j-1']);
    }
  });

  it.each([
    ['searches', (model: PanelModel) => model.set({ query: 'b' })],
    ['filters', (model: PanelModel) => model.set({ filter: 'failed' })],
    ['folds a notebook', (model: PanelModel) => model.toggleGroup('a.ipynb')],
    ['folds a group', (model: PanelModel) => model.toggleSweep('night')]
  ])('takes the focus to no revealed job once somebody %s', (_, act) => {
    const { model } = panel({ notebook: 'a.ipynb' });
    model.reveal('j-0');
    act(model);
    expect(model.revealedKey).toBeNull();
  });

  it('groups by notebook, the newest first, and folds groups', () => {
    const { model } = panel(
      { notebook: 'b.ipynb' },
      { notebook: 'a.ipynb' },
      { notebook: 'b.ipynb' }
    );
    model.set({ isGrouped: true });
    const open = ['[b.ipynb]', 'j-0', 'j-2', '[a.ipynb]', 'j-1'];
    expect(shown(model)).toEqual(open);
    model.toggleGroup('b.ipynb');
    expect(shown(model)).toEqual(['[b.ipynb]', '[a.ipynb]', 'j-1']);
    model.toggleGroup('b.ipynb');
    expect(shown(model)).toEqual(open);
  });

  it('shows the same rows until something changes', () => {
    const { model, jobs } = panel({});
    const before = model.rows;
    expect(model.rows).toBe(before);
    jobs.update(job({ name: 'j-0', submitted: '9' }));
    expect(model.rows).toBe(before);
    jobs.update(job({ name: 'j-0', submitted: '9', state: 'running' }));
    expect(model.rows).not.toBe(before);
  });
});

describe('announceChanges', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('tells changes of states together, and neither progress nor ends', () => {
    const { jobs } = panel({}, {});
    const said: string[] = [];
    const stop = announceChanges(jobs, text => said.push(text), TRANS);
    const change = (index: number, changes: Partial<Job>) =>
      jobs.update(
        job({ name: `j-${index}`, submitted: String(9 - index), ...changes })
      );
    change(0, { state: 'running' });
    change(0, { state: 'running', journal: 9 });
    change(1, { state: 'starting' });
    change(5, { state: 'running' }); // not seen before: nothing has changed
    jest.runAllTimers();
    expect(said).toEqual(['j-0: Running. j-1: Starting']);
    change(0, { state: 'succeeded' });
    jest.runAllTimers();
    expect(said).toHaveLength(1);
    stop();
  });
});

test('a screen reader hears the same announcement each time', async () => {
  Object.assign(window, {
    ResizeObserver: class {
      observe(): void {}
      disconnect(): void {}
    }
  });
  const { model, jobs } = panel({}, {}, {}, {});
  const listen = jest.spyOn(jobs.changed, 'connect');
  const view = new JobsPanel(model, new CommandRegistry(), TRANS);
  Widget.attach(view, document.body);
  await until(() => listen.mock.calls.length > 0);
  const spoken = view.node.querySelector('[aria-live]')!;
  const said: string[] = [];
  // A reader speaks the text that is added or changed.
  const observer = new MutationObserver(mutations =>
    mutations
      .flatMap(({ addedNodes, target, type }) =>
        type === 'characterData' ? [target] : [...addedNodes]
      )
      .forEach(({ textContent }) => said.push(textContent ?? ''))
  );
  observer.observe(spoken, {
    childList: true,
    characterData: true,
    subtree: true
  });
  for (const state of ['starting', 'running'] as const) {
    jest.useFakeTimers();
    jobs.all.forEach(each => jobs.update({ ...each, state }));
    const count = said.length;
    jest.advanceTimersByTime(1000);
    jest.useRealTimers();
    await until(() => said.length > count);
  }
  expect(said).toEqual(['4 jobs changed', '4 jobs changed']);
  observer.disconnect();
  view.dispose();
});

describe('words', () => {
  it('tell how a job stands', () => {
    const said = (changes: Partial<Job>) => statusText(job(changes), TRANS);
    expect(said({})).toBe('Queued');
    expect(said({ position: 1 })).toBe('Queued: next in line');
    expect(said({ position: 3 })).toBe('Queued: place 3 in line');
    expect(said({ state: 'running', cancel_requested: true })).toBe(
      'Being cancelled'
    );
    const times = {
      started: '2026-01-01T00:00:00Z',
      finished: '2026-01-01T00:03:00Z'
    };
    expect(said({ state: 'failed', ...times })).toBe('Failed after 3 min');
    expect(said({ state: 'cancelled' })).toBe('Cancelled');
  });

  it('tell why it failed or waits, and what became of its result', () => {
    const said = (changes: Partial<Job>) => noteText(job(changes), TRANS);
    expect(said({})).toBeNull();
    expect(said({ reason: 'QuotaExceeded' })).toBe('It is over the quota');
    expect(said({ state: 'failed', reason: 'KernelDied' })).toBe(
      'The kernel died.'
    );
    const message = 'The kernel died in cell 3.';
    expect(said({ state: 'failed', reason: 'KernelDied', message })).toBe(
      message
    );
    expect(said({ state: 'failed', reason: 'New', message })).toBe(message);
    const delivery = { state: 'held' as const, path: null, message: 'Full.' };
    expect(said({ state: 'succeeded', delivery })).toBe('Not delivered: Full.');
  });

  it('count the cell that runs, and not one too many', () => {
    const said = (current_cell: number | null, cells: number) =>
      progressText(
        job({
          progress: { cells_done: 1, cells_total: 4, current_cell, cells }
        }),
        TRANS
      );
    expect(said(null, 7)).toBeNull();
    expect(said(0, 0)).toBeNull();
    expect(said(2, 7)).toBe('cell 3 of 7');
  });

  it('tell what was used of what there was', () => {
    const GiB = 1 << 30;
    const usage = {
      cpu_mean: 0.94,
      cpu_given: 4,
      memory_peak: 1.2 * GiB,
      memory_given: 16 * GiB,
      enough: 'small'
    };
    const said = (changes: Record<string, unknown>) =>
      usageText(job({ usage: { ...usage, ...changes } }), TRANS);
    expect(said({})).toBe(
      'Used 0.9 of 4 CPU, 1.2 of 16 GiB; small would have been enough.'
    );
    expect(said({ enough: null, larger: 'big' })).toBe(
      'Used 0.9 of 4 CPU, 1.2 of 16 GiB; big has more memory.'
    );
    expect(said({ enough: null, memory_peak: GiB / 16, gpu_idle: true })).toBe(
      'Used 0.9 of 4 CPU, 0.06 of 16 GiB, no GPU.'
    );
    expect(usageText(job({ usage: { wall: 3 } }), TRANS)).toBeNull();
    expect(usageText(job(), TRANS)).toBeNull();
  });

  it('give a command that a shell takes as it was', () => {
    const asked = {
      max_runtime: 60,
      isolated: false,
      inputs: [],
      name: 'x',
      output: null,
      group_limit: null
    };
    expect(formatCommandLine(job({ max_runtime: 50, asked }))).toBe(
      'jupyter-to-job submit study.ipynb -f small -d cpu --max-runtime 60 --name x'
    );
    const strange = job({
      notebook: "it's $HOME/a b.ipynb",
      parameters: { rate: 0.1, title: 'x y' },
      inputs: ['a.csv', 'b.csv'],
      max_runtime: 3600,
      isolated: true,
      asked: {
        max_runtime: null,
        isolated: true,
        inputs: ['*.csv'],
        name: null,
        output: null,
        group_limit: null
      }
    });
    expect(formatCommandLine(strange)).toBe(
      `jupyter-to-job submit 'it'"'"'s $HOME/a b.ipynb' -f small -d cpu ` +
        `-p rate 0.1 -p title '"x y"' -i '*.csv' --isolated`
    );
  });
});

test('a row says no longer when its job starts once that time is over', async () => {
  jest.useFakeTimers({ advanceTimers: true });
  const waiting = job({ wait: overdueSoon() });
  const row = ReactWidget.create(
    createElement(JobRow, {
      jobs: new Jobs({} as IJobsApi),
      job: waiting,
      commands: new CommandRegistry(),
      trans: TRANS,
      isActive: false,
      difference: '',
      day: ''
    })
  );
  Widget.attach(row, document.body);
  const says = () => row.node.textContent.includes('Starts at about');
  await until(says);
  expect(says()).toBe(true);
  jest.advanceTimersByTime(40_000);
  await until(() => !says());
  expect(says()).toBe(false);
  expect(row.node.textContent).toContain('2 jobs are before it.');
  row.dispose();
  jest.useRealTimers();
});
