/** The table of jobs: what it shows in which order, what is selected, and what is done to several. */
import type { Contents } from '@jupyterlab/services';
import { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import { addJobCommands, CommandIDs } from '../src/jobCommands';
import {
  ApiError,
  type IExportApi,
  type IJobsApi,
  type IJournalApi,
  type JobsQuery
} from '../src/jobs/client';
import type { Job } from '../src/jobs/job';
import { Jobs } from '../src/jobs/model';
import {
  createColumns,
  findColumn,
  listValueColumns
} from '../src/table/columns';
import { createJobsActions, runForJobs } from '../src/table/manyJobs';
import { TableModel } from '../src/table/model';
import { Selection } from '../src/table/selection';
import { RegistryPreferences } from '../src/settings/preferences';
import { job, TRANS } from './fixtures';

type Answer = { button: { accept?: boolean; actions?: string[] } };
const isConfirmed = jest.fn<Promise<Answer>, []>();
const emit = jest.fn();
jest.mock('@jupyterlab/apputils', () => ({
  ...jest.requireActual<object>('@jupyterlab/apputils'),
  showDialog: () => isConfirmed(),
  Notification: { emit: (...args: unknown[]) => emit(...args) as unknown }
}));

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

const time = (minute: number) =>
  `2026-01-01T00:${String(minute).padStart(2, '0')}:00Z`;

/** A table of jobs `j-0`, `j-1` and so on, the first of which is the newest. */
function table(...known: Partial<Job>[]): { model: TableModel; jobs: Jobs } {
  const jobs = new Jobs({} as IJobsApi);
  const update = (changes: Partial<Job>, index: number) =>
    jobs.update(
      job({ name: `j-${index}`, submitted: time(59 - index), ...changes })
    );
  known.forEach(update);
  const model = new TableModel(jobs, TRANS);
  model.isVisible = true;
  return { model, jobs };
}

describe('the rows', () => {
  it('begin with what runs and what is next', () => {
    const { model } = table(
      { state: 'succeeded' },
      { state: 'queued', position: 2 },
      { state: 'queued', position: 1 },
      { state: 'starting' },
      { state: 'failed' },
      { state: 'running' }
    );
    expect(model.names).toEqual(['j-3', 'j-5', 'j-2', 'j-1', 'j-0', 'j-4']);
  });

  it('are sorted by a column, up, down, and not at all; what is unknown comes last', () => {
    const { model } = table(
      { started: time(1), finished: time(9), state: 'succeeded' },
      { state: 'queued' },
      { started: time(1), finished: time(2), state: 'failed' }
    );
    model.toggleSort('duration');
    expect(model.names).toEqual(['j-2', 'j-0', 'j-1']);
    model.toggleSort('duration');
    expect(model.names).toEqual(['j-0', 'j-2', 'j-1']);
    model.toggleSort('duration');
    expect(model.state.sort).toBeNull();
    expect(model.names).toEqual(['j-1', 'j-0', 'j-2']);
    model.toggleSort('state');
    expect(model.names).toEqual(['j-1', 'j-2', 'j-0']);
  });

  it('are sorted by a parameter as numbers, and by a metric', () => {
    const metric = (value: unknown) => ({
      accuracy: { value, picture: null, cell: 0 }
    });
    const { model } = table(
      { parameters: { rate: 9 }, metrics: metric(0.5) },
      { parameters: { rate: 10 }, metrics: metric(0.9) },
      { parameters: { rate: 'auto' } },
      { parameters: {} }
    );
    model.toggleSort('parameter.rate');
    expect(model.names).toEqual(['j-0', 'j-1', 'j-2', 'j-3']);
    model.set({ sort: { column: 'metric.accuracy', isDescending: true } });
    expect(model.names).toEqual(['j-1', 'j-0', 'j-2', 'j-3']);
    expect(listValueColumns(model.jobs.all)).toEqual({
      parameters: ['parameter.rate'],
      metrics: ['metric.accuracy']
    });
  });

  it('are filtered by words in parameters, by notebook and by group', () => {
    const { model } = table(
      { parameters: { rate: 0.1, optimizer: 'Adam' }, group: 'g' },
      { parameters: { rate: 0.2 }, notebook: 'other.ipynb' }
    );
    model.set({ query: 'rate=0.1' });
    expect(model.names).toEqual(['j-0']);
    model.set({ query: 'adam' });
    expect(model.names).toEqual(['j-0']);
    model.set({ query: '', notebook: 'other.ipynb' });
    expect(model.names).toEqual(['j-1']);
    model.set({ notebook: null, group: 'g' });
    expect(model.names).toEqual(['j-0']);
    expect(model.choices).toEqual({
      notebooks: ['other.ipynb', 'study.ipynb'],
      groups: ['g']
    });
  });

  it('change a moment after the jobs, and only while they are visible', () => {
    const { model, jobs } = table({ state: 'running' });
    expect(model.names).toEqual(['j-0']);
    jobs.update(job({ name: 'new', submitted: time(0) }));
    expect(model.names).toEqual(['j-0']);
    jest.runAllTimers();
    expect(model.names).toEqual(['j-0', 'new']);
    model.isVisible = false;
    jobs.remove('new');
    jest.runAllTimers();
    expect(model.names).toEqual(['j-0', 'new']);
    model.isVisible = true;
    expect(model.names).toEqual(['j-0']);
  });
});

describe('the columns', () => {
  it('show the parameters in which jobs of a notebook differ', () => {
    const { model, jobs } = table(
      { parameters: { rate: 0.1, depth: 3 } },
      { parameters: { rate: 0.2, depth: 3 } },
      { parameters: { rate: 0.3 }, notebook: 'other.ipynb' }
    );
    const column = findColumn(model.allColumns, 'parameters')!;
    const shown = () => jobs.all.map(each => column.text(each));
    expect(shown()).toEqual(['rate=0.1', 'rate=0.2', '']);
    jobs.update(job({ name: 'j-3', submitted: time(1) }));
    expect(shown()).toEqual(['rate=0.1, depth=3', 'rate=0.2, depth=3', '', '']);
    ['j-1', 'j-3'].forEach(name => jobs.remove(name));
    expect(shown()).toEqual(['', '']);
    const changed = { parameters: { rate: 7 }, notebook: 'other.ipynb' };
    jobs.update(job({ name: 'j-4', submitted: time(0), ...changed }));
    expect(shown()).toEqual(['', 'rate=0.3', 'rate=7']);
  });

  it('are chosen, kept in order, and reset', () => {
    const { model } = table({ parameters: { rate: 1 } });
    const told: (readonly string[])[] = [];
    model.columnsChanged.connect((_, ids) => told.push(ids));
    model.setColumns(['state', 'name', 'no such column', 'parameter.rate']);
    expect(model.columns.map(({ label }) => label)).toEqual([
      'State',
      'Name',
      'rate'
    ]);
    model.toggleColumn('group');
    expect(model.columnIds).toEqual([
      'name',
      'state',
      'group',
      'parameter.rate'
    ]);
    model.toggleColumn('state');
    expect(told.at(-1)).toEqual(['name', 'group', 'parameter.rate']);
    model.resetColumns();
    expect(model.columnIds).toContain('receipt');
    expect(told.at(-1)).toEqual([]);
  });

  it('all have a text and something to sort by', () => {
    const columns = createColumns(new Jobs({} as IJobsApi), TRANS);
    const ended = job({
      state: 'succeeded',
      submitted: time(0),
      started: time(1),
      finished: time(3),
      usage: {
        cpu_mean: 0.5,
        cpu_given: 1,
        memory_peak: 1 << 30,
        memory_given: 2 ** 31,
        gpu_utilisation_mean: 0.42,
        gpu_memory_peak: 3 << 20
      }
    });
    const of = (id: string) => {
      const column = findColumn(columns, id)!;
      return [column.text(ended), column.sortKey(ended)];
    };
    expect(of('receipt')).toEqual([
      '0.5 of 1 CPU, 1.0 of 2 GiB, 42 % of its GPU',
      1 << 30
    ]);
    expect(of('gpu')).toEqual(['42 %', 0.42]);
    expect(of('memory')).toEqual(['1 GiB', 1 << 30]);
    expect(of('duration')).toEqual(['', 120]);
    expect(of('flavor')).toEqual(['small · cpu', 'small · cpu']);
    expect(of('group')).toEqual(['', null]);
  });
});

describe('the selection', () => {
  it('grows by ranges from the row that was chosen last', () => {
    const rows = ['a', 'b', 'c', 'd'];
    const selection = new Selection();
    const selected = () => rows.filter(name => selection.has(name));
    selection.replace('c');
    selection.extend('a', rows);
    expect(selected()).toEqual(['a', 'b', 'c']);
    selection.extend('d', rows);
    expect(selected()).toEqual(['c', 'd']);
    selection.toggle('c');
    expect(selected()).toEqual(['d']);
    selection.clear();
    selection.extend('b', ['b']);
    expect(selected()).toEqual(['b']);
  });

  it('loses what is deleted or hidden by a filter', () => {
    const { model, jobs } = table(
      { state: 'running' },
      { state: 'failed' },
      { state: 'failed' }
    );
    model.select(selection => selection.selectAll(model.names));
    jobs.remove('j-2');
    jest.runAllTimers();
    expect(model.selectedJobs.map(({ name }) => name)).toEqual(['j-0', 'j-1']);
    model.set({ state: 'failed' });
    model.set({ state: 'all' });
    expect(model.selectedJobs.map(({ name }) => name)).toEqual(['j-1']);
  });
});

describe('older jobs', () => {
  const page = (from: number, count: number) =>
    Array.from({ length: count }, (_, index) =>
      job({
        name: `j-${String(from + index).padStart(5, '0')}`,
        submitted: String(99999 - from - index),
        state: 'succeeded'
      })
    );

  function server(total: number) {
    const asked: JobsQuery[] = [];
    const list = (query: JobsQuery) => {
      asked.push(query);
      const from = Number(query.cursor ?? 0);
      const count = Math.min(query.limit, total - from);
      const next = from + count < total ? String(from + count) : null;
      const jobs = query.state === undefined ? page(from, count) : [];
      return Promise.resolve({ jobs, next });
    };
    return { asked, jobs: new Jobs({ list } as unknown as IJobsApi) };
  }

  it('are all loaded while the table is visible', async () => {
    jest.useRealTimers();
    const { asked, jobs } = server(1700);
    await jobs.refresh();
    const model = new TableModel(jobs, TRANS);
    await new Promise(resolve => setTimeout(resolve, 20));
    expect(jobs.all).toHaveLength(50);
    model.isVisible = true;
    while (jobs.hasMore) {
      await new Promise(resolve => setTimeout(resolve, 5));
    }
    expect(jobs.all).toHaveLength(1700);
    expect(asked.at(-1)).toEqual({ limit: 500, cursor: '1550' });
    model.dispose();
  });

  it('are not asked for again after a failure, until a request succeeds', async () => {
    jest.useRealTimers();
    const { jobs } = server(1700);
    await jobs.refresh();
    const failing = new ApiError('unreachable', '');
    const loadMore = jest.spyOn(jobs, 'loadMore').mockImplementation(() => {
      jobs.error = failing;
      jobs.conditionChanged.emit();
      return Promise.resolve();
    });
    const model = new TableModel(jobs, TRANS);
    model.isVisible = true;
    await new Promise(resolve => setTimeout(resolve, 20));
    expect(loadMore).toHaveBeenCalledTimes(1);
    await jobs.refresh();
    await new Promise(resolve => setTimeout(resolve, 20));
    expect(loadMore).toHaveBeenCalledTimes(2);
    model.dispose();
  });
});

describe('several jobs', () => {
  beforeEach(() => {
    isConfirmed.mockReset();
    emit.mockReset();
  });

  function scene(...known: Partial<Job>[]) {
    const { jobs } = table(...known);
    const open = jest.fn<unknown, [ReadonlyPartialJSONObject]>();
    const openBare = jest.fn<unknown, [ReadonlyPartialJSONObject]>();
    const commands = new CommandRegistry();
    commands.addCommand('docmanager:open', { execute: open });
    commands.addCommand(CommandIDs.openWithoutOutputs, { execute: openBare });
    const get = (path: string) =>
      Promise.resolve({ size: path === 'large.ipynb' ? 1e9 : 1 });
    const services = {
      commands,
      contents: { get } as unknown as Contents.IManager,
      jobs,
      preferences: new RegistryPreferences(),
      trans: TRANS
    };
    addJobCommands({
      ...services,
      journalApi: {} as IJournalApi,
      exportApi: {} as IExportApi,
      dialog: null
    });
    const actions = createJobsActions(services);
    const run = (id: string, told: string[] = []) =>
      runForJobs(
        actions.find(action => action.id === id)!,
        jobs.all,
        text => told.push(text),
        TRANS
      );
    return { jobs, open, openBare, run };
  }

  it('are cancelled if they have not ended, after a question if any runs', async () => {
    const { jobs, run } = scene(
      { state: 'running' },
      { state: 'queued' },
      { state: 'succeeded' }
    );
    const cancel = jest
      .spyOn(jobs, 'cancel')
      .mockImplementation(name => Promise.resolve(jobs.get(name)!));
    isConfirmed.mockResolvedValue({ button: { accept: false } });
    expect(await run('cancel')).toBe(0);
    expect(cancel).not.toHaveBeenCalled();
    isConfirmed.mockResolvedValue({ button: { accept: true } });
    const told: string[] = [];
    expect(await run('cancel', told)).toBe(2);
    expect(cancel.mock.calls.flat()).toEqual(['j-0', 'j-1']);
    expect(told).toEqual(['Cancelled 1 of 2', 'Cancelled 2 of 2', '']);
  });

  it('that wait are cancelled without a question, and ended ones run again', async () => {
    const { jobs, run } = scene({ state: 'queued' }, { state: 'failed' });
    jest
      .spyOn(jobs, 'cancel')
      .mockImplementation(name => Promise.resolve(jobs.get(name)!));
    const rerun = jest
      .spyOn(jobs, 'rerun')
      .mockImplementation(name => Promise.resolve(jobs.get(name)!));
    expect(await run('cancel')).toBe(1);
    expect(await run('rerun')).toBe(1);
    expect(rerun).toHaveBeenCalledWith('j-1');
    expect(isConfirmed).not.toHaveBeenCalled();
  });

  it('are not run again by a second press, until the first is done', async () => {
    const { jobs, run } = scene({ state: 'failed' }, { state: 'failed' });
    const ends: (() => void)[] = [];
    const rerun = jest.spyOn(jobs, 'rerun').mockImplementation(
      name =>
        new Promise(resolve => {
          ends.push(() => resolve(jobs.get(name)!));
        })
    );
    const first = run('rerun');
    expect(await run('rerun')).toBe(0);
    jobs.update(job({ name: 'j-2', state: 'failed' }));
    const next = run('rerun'); // of one that was selected meanwhile, too
    ends.splice(0).forEach(end => end());
    expect(await Promise.all([first, next])).toEqual([2, 1]);
    expect(rerun.mock.calls.flat()).toEqual(['j-0', 'j-1', 'j-2']);
    const again = run('rerun');
    ends.forEach(end => end());
    expect(await again).toBe(3);
  });

  it('are not deleted by a second press while the first asks', async () => {
    const { jobs, run } = scene({});
    const remove = jest.spyOn(jobs, 'delete').mockResolvedValue();
    let answer = (_: Answer) => {};
    isConfirmed.mockReturnValue(new Promise(resolve => (answer = resolve)));
    const first = run('delete');
    expect(await run('delete')).toBe(0);
    answer({ button: { accept: true } });
    expect(await first).toBe(1);
    expect([isConfirmed, remove].map(({ mock }) => mock.calls.length)).toEqual([
      1, 1
    ]);
  });

  it('tell once what failed, and the others go on', async () => {
    const { jobs, run } = scene({}, {}, {});
    jest
      .spyOn(jobs, 'delete')
      .mockImplementation(name =>
        name === 'j-2'
          ? Promise.resolve()
          : Promise.reject(new ApiError('refused', 'It is held.'))
      );
    isConfirmed.mockResolvedValue({ button: { accept: true } });
    expect(await run('delete')).toBe(1);
    expect(emit).toHaveBeenCalledTimes(1);
    expect(emit.mock.calls[0]).toEqual([
      '2 of 3 jobs were not deleted: It is held.',
      'error',
      expect.anything()
    ]);
  });

  it.each([
    [
      'rerun',
      'failed',
      'It is not known whether 1 of 2 jobs were rerun: There is no connection to the server.'
    ],
    [
      'delete',
      'failed',
      'It is not known whether 2 of 2 jobs were deleted: There is no connection to the server.'
    ],
    [
      'cancel',
      'running',
      'It is not known whether 2 of 2 jobs were cancelled: There is no connection to the server.'
    ]
  ] as const)(
    'tell of %s what became of it without an answer',
    async (id, state, text) => {
      const { jobs, run } = scene({ state }, { state });
      const lost = new ApiError('unreachable', '');
      jest
        .spyOn(jobs, 'rerun')
        .mockImplementation(name =>
          name === 'j-1'
            ? Promise.reject(lost)
            : Promise.resolve(jobs.get(name)!)
        );
      jest.spyOn(jobs, 'delete').mockRejectedValue(lost);
      jest.spyOn(jobs, 'cancel').mockRejectedValue(lost);
      isConfirmed.mockResolvedValue({ button: { accept: true } });
      await run(id);
      expect(emit.mock.calls).toEqual([[text, 'error', expect.anything()]]);
    }
  );

  it('tell apart which were not rerun, and of which that is not known', async () => {
    const failed = { state: 'failed' } as const;
    const { jobs, run } = scene(failed, failed, failed, failed);
    const failures: Record<string, ApiError> = {
      'j-0': new ApiError('unreachable', ''),
      'j-1': new ApiError('refused', 'It is held.'),
      'j-3': new ApiError('refused', 'It is held.')
    };
    jest
      .spyOn(jobs, 'rerun')
      .mockImplementation(name =>
        failures[name]
          ? Promise.reject(failures[name])
          : Promise.resolve(jobs.get(name)!)
      );
    expect(await run('rerun')).toBe(1);
    expect(emit.mock.calls.map(([text]: unknown[]) => text)).toEqual([
      '2 of 4 jobs were not rerun: It is held. It is not known whether 1 of 4 jobs were rerun: There is no connection to the server.'
    ]);
  });

  const delivered = (path: string) => ({
    delivery: { state: 'delivered' as const, path, message: null }
  });

  it('are opened where they have a result', async () => {
    const { open, run } = scene(delivered('a.ipynb'), {});
    expect(await run('open')).toBe(1);
    expect(open.mock.calls).toEqual([[{ path: 'a.ipynb' }]]);
  });

  it('tell once which results were not opened', async () => {
    const { open, run } = scene(
      delivered('a.ipynb'),
      delivered('b.ipynb'),
      delivered('c.ipynb')
    );
    open.mockImplementation(({ path }) =>
      path === 'b.ipynb'
        ? Promise.resolve()
        : Promise.reject(new Error('404 Not Found'))
    );
    const told: string[] = [];
    expect(await run('open', told)).toBe(1);
    expect(told.at(-2)).toBe('Opened 1 of 3');
    expect(emit.mock.calls).toEqual([
      [
        '2 of 3 results were not opened: a.ipynb cannot be opened (404 Not Found). ' +
          'If it was moved or deleted, the job can be rerun.',
        'error',
        expect.anything()
      ]
    ]);
  });

  it('are opened without their outputs where they are large, if so chosen', async () => {
    const { open, openBare, run } = scene(delivered('large.ipynb'));
    isConfirmed.mockResolvedValue({ button: { actions: ['bare'] } });
    expect(await run('open')).toBe(1);
    expect(openBare.mock.calls).toEqual([[{ name: 'j-0' }]]);
    expect(open).not.toHaveBeenCalled();
  });
});
