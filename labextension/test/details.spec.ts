/** The details of a job: what they say, and when they load it. */
import { ServerConnection } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import type { CellReceipt, Difference, JobRecord } from '../src/api';
import { differenceRows } from '../src/details/differenceView';
import {
  environmentFacts,
  metricFacts,
  progressFacts,
  retentionText,
  submissionFacts,
  usageFacts
} from '../src/details/facts';
import { plainLog } from '../src/details/logText';
import { DetailsModel } from '../src/details/model';
import { notificationText } from '../src/details/notificationText';
import { receiptColumns, shares, sortedIndices } from '../src/details/receipt';
import { Resource } from '../src/details/resource';
import { toReadOnly } from '../src/details/snapshotNotebook';
import { ApiError, Client, type IDetailsApi } from '../src/jobs/client';
import type { Job } from '../src/jobs/job';
import type { IJobs } from '../src/tokens';
import { job, RECORD, TRANS } from './fixtures';

function receipt(changes: Partial<CellReceipt> = {}): CellReceipt {
  return {
    cell: 0,
    title: 'train()',
    state: 'done',
    started: null,
    wall: null,
    cpu: null,
    memory_peak: null,
    gpu_utilisation: null,
    gpu_memory_peak: null,
    ...changes
  };
}

function textOf(
  facts: { label: string; text: string }[],
  label: string
): string | undefined {
  return facts.find(fact => fact.label === label)?.text;
}

describe('facts', () => {
  it('tell how far a job is and how long it ran', () => {
    const facts = progressFacts(
      job({
        state: 'succeeded',
        progress: {
          cells_done: 3,
          cells_total: 4,
          current_cell: null,
          cells: 5
        },
        started: '2026-11-24T10:00:00.000Z',
        finished: '2026-11-24T10:01:05.000Z'
      }),
      TRANS
    );
    expect(textOf(facts, 'Cells')).toBe('3 of 4');
    expect(textOf(facts, 'Took')).toBe('1 min 5 s');
    expect(textOf(facts, 'Submitted')).toBeUndefined();
  });

  it('lead to the notebook and to the earlier job', () => {
    const facts = submissionFacts(job({ rerun_of: 'old-aaaaaaaa' }), TRANS);
    expect(facts[0]).toMatchObject({ path: 'study.ipynb' });
    expect(facts).toContainEqual(
      expect.objectContaining({ job: 'old-aaaaaaaa' })
    );
  });

  it('leave out what is not known of the usage', () => {
    const usage = {
      memory_peak: 3 << 20,
      memory_given: 1 << 30,
      cpu_mean: 0.5
    };
    const facts = usageFacts(job({ usage }), TRANS);
    expect(facts.map(({ label }) => label)).toEqual(['Memory', 'CPU']);
    expect(textOf(facts, 'Memory')).toBe('3 MiB at most (of 1 GiB)');
    expect(textOf(facts, 'CPU')).toBe('0.5 CPU on average');
    expect(usageFacts(job(), TRANS)).toEqual([]);
  });

  it('name pictures among the metrics', () => {
    const metrics = {
      accuracy: { value: 0.9, picture: null, cell: 1 },
      curve: { value: null, picture: 'image/png', cell: 2 }
    };
    expect(metricFacts(job({ metrics }), TRANS)).toEqual([
      { label: 'accuracy', text: '0.9' },
      { label: 'curve', text: 'A picture, in the result' }
    ]);
  });

  it('have names of variables', () => {
    const facts = environmentFacts(RECORD, TRANS);
    expect(textOf(facts, 'Variables that were set')).toBe('API_KEY');
    expect(textOf(facts, 'Variables that came along')).toBe('HOME, PATH');
    expect(textOf(facts, 'Image')).toBeUndefined();
  });

  it('tell until when a job is kept', () => {
    const text = (changes: Partial<JobRecord>) =>
      retentionText({ ...RECORD, ...changes }, TRANS);
    expect(text({})).toContain('for 7 d after the delivery');
    expect(text({ kept_until: '2026-12-01T10:00:00.000Z' })).toContain(
      'until 2026-12-01'
    );
    expect(text({ retention: null })).toContain('until you delete');
    const cleared = '2026-11-20T10:00:00.000Z';
    expect(text({ cleared, cleared_reason: 'Kept for 7d' })).toMatch(
      /removed: 2026-11-20.*\. Kept for 7d\.$/
    );
  });
});

describe('receipts of cells', () => {
  const cells = [
    receipt({ wall: 2, cpu: 1 }),
    receipt({
      wall: 8,
      cpu: 0,
      gpu_utilisation: 0.5,
      gpu_memory_peak: 1 << 30
    }),
    receipt({ state: 'running' })
  ];

  it('have the columns that are known', () => {
    const columns = receiptColumns(cells, TRANS);
    expect(columns.map(({ id }) => id)).toEqual(['wall', 'cpu', 'gpu']);
    expect(columns[0]!.text(cells[1]!)).toBe('8.00 s');
    const [wall] = receiptColumns([receipt({ wall: 0.002 })], TRANS);
    expect(wall!.text(receipt({ wall: 0.002 }))).toBe('<0.01 s');
    expect(wall!.text(receipt({ wall: 65 }))).toBe('1 min 5 s');
    expect(columns[2]!.text(cells[1]!)).toBe('50 % · 1 GiB');
    expect(columns[2]!.text(cells[0]!)).toBe('–');
  });

  it('have bars as long as their share of the most', () => {
    const [wall, , gpu] = receiptColumns(cells, TRANS);
    expect(shares(cells, wall!)).toEqual([0.25, 1, null]);
    expect(shares(cells, gpu!)).toEqual([null, 0.5, null]);
  });

  it('are sorted by a column', () => {
    const [wall] = receiptColumns(cells, TRANS);
    expect(sortedIndices(cells, wall!)).toEqual([1, 0, 2]);
    expect(sortedIndices(cells, null)).toEqual([0, 1, 2]);
  });
});

it('folds cells without a change', () => {
  const cell = (kind: Difference['cells'][number]['kind']) => ({
    kind,
    cell_type: 'code',
    before: 0,
    after: 0,
    lines: []
  });
  const cells = (['same', 'same', 'added', 'same'] as const).map(cell);
  const rows = differenceRows({ notebook: 'a.ipynb', cells });
  expect(rows).toEqual([
    { unchanged: 2 },
    { cell: cell('added') },
    { unchanged: 1 }
  ]);
});

it('shows a log without colors and overwritten text', () => {
  expect(plainLog('\u001b[31mred\u001b[0m\n1 %\r2 %\n')).toBe('red\n2 %\n');
});

it('tells what became of a notification', () => {
  const told = { hook: 'ops', time: '', event: 'failed', message: null };
  expect(notificationText({ ...told, state: 'sent', tries: 1 }, TRANS)).toBe(
    'Failed: sent'
  );
  const message = 'HTTP 500';
  expect(
    notificationText({ ...told, state: 'given_up', tries: 3, message }, TRANS)
  ).toBe('Failed: given up (try 3). HTTP 500');
});

it('trusts nothing of a snapshot, whatever it says', () => {
  const { metadata } = toReadOnly({
    cell_type: 'code',
    source: '',
    metadata: { trusted: true, tags: ['a'] }
  });
  expect(metadata).toEqual({ tags: ['a'], editable: false, deletable: false });
});

describe('Resource', () => {
  it('loads once more what was asked for meanwhile', async () => {
    let count = 0;
    const resource = new Resource(() => Promise.resolve(++count), jest.fn());
    await Promise.all([resource.load(), resource.load(), resource.load()]);
    expect(resource.value).toBe(2);
    expect(resource.isLoading).toBe(false);
  });

  it('keeps why a load failed until one succeeds', async () => {
    const load = jest.fn().mockRejectedValueOnce('no').mockResolvedValue(1);
    const resource = new Resource<number>(load, jest.fn());
    await resource.load();
    expect(resource).toMatchObject({ value: null, error: 'no' });
    await resource.load();
    expect(resource).toMatchObject({ value: 1, error: null });
  });
});

describe('DetailsModel', () => {
  function create(found: Job) {
    const jobs = {
      feed: 'live',
      error: null,
      isBusy: false,
      get: jest.fn(() => found as Job | undefined),
      find: jest.fn(() => Promise.resolve(found))
    } as unknown as jest.Mocked<IJobs>;
    for (const name of ['changed', 'removed', 'conditionChanged']) {
      Object.assign(jobs, { [name]: new Signal(jobs) });
    }
    const api = {
      get: jest.fn(() => Promise.resolve({ ...found, message: 'loaded' })),
      getRecord: jest.fn(() => Promise.resolve(RECORD)),
      getCells: jest.fn(() => Promise.resolve([receipt()])),
      readLogs: jest.fn(() =>
        Promise.resolve({ text: 'hello', next: 5, end: true })
      )
    };
    const model = new DetailsModel(
      found.name,
      jobs,
      api as unknown as IDetailsApi,
      0
    );
    return { model, jobs, api };
  }
  const settle = () => new Promise(resolve => setTimeout(resolve, 20));

  it('shows what is known at once, and then all', async () => {
    const { model, api } = create(job());
    expect(model.job?.message).toBeNull();
    await settle();
    expect(model.job?.message).toBe('loaded');
    expect(model.cells.value).toHaveLength(1);
    expect(api.readLogs).not.toHaveBeenCalled();
    model.dispose();
  });

  it('loads again after changes, the log only if it is shown', async () => {
    const { model, jobs, api } = create(job());
    await settle();
    await model.log.load();
    expect(model.log.value).toEqual({ text: 'hello', isCut: false });
    const running = job({ state: 'running' });
    for (let count = 0; count < 5; count += 1) {
      (jobs.changed as Signal<IJobs, Job>).emit(running);
    }
    expect(model.job?.state).toBe('running');
    await settle();
    expect(api.getCells.mock.calls.length).toBeLessThanOrEqual(3);
    expect(api.readLogs.mock.calls.length).toBeGreaterThan(1);
    (jobs.changed as Signal<IJobs, Job>).emit(job({ name: 'other-aaaaaaaa' }));
    expect(model.job?.name).toBe('study-aaaaaaaa');
    model.dispose();
  });

  it('loads the receipts of cells only when the run went on', async () => {
    const { model, jobs, api } = create(job());
    const change = async (changes: Partial<Job>) => {
      const changed = job(changes);
      api.get.mockResolvedValue({ ...changed, message: 'loaded' });
      (jobs.changed as Signal<IJobs, Job>).emit(changed);
      await settle();
    };
    const at = (cell: number) => ({ ...job().progress, current_cell: cell });
    await settle();
    expect(api.getCells).toHaveBeenCalledTimes(1);
    const running: Partial<Job> = { state: 'running', progress: at(1) };
    await change(running);
    expect(api.getCells).toHaveBeenCalledTimes(2);
    await change({ ...running, journal: 5000 });
    expect(api.get).toHaveBeenCalledTimes(3);
    expect(api.getCells).toHaveBeenCalledTimes(2);
    api.getCells.mockRejectedValueOnce('no');
    await change({ ...running, progress: at(2) });
    expect(model.cells.error).toBe('no');
    await change({ ...running, progress: at(2), journal: 9000 });
    expect(model.cells.error).toBeNull();
    expect(api.getCells).toHaveBeenCalledTimes(4);
    model.dispose();
  });

  it('keeps what an event told, and loads again once requests succeed', async () => {
    const { model, jobs, api } = create(job({ state: 'running' }));
    await settle();
    api.get.mockRejectedValue(new ApiError('unreachable', 'HTTP 503'));
    const ended = job({ state: 'succeeded' });
    (jobs.changed as Signal<IJobs, Job>).emit(ended);
    await settle();
    expect(model.loadedJob.error).not.toBeNull();
    expect(model.job?.state).toBe('succeeded');

    api.get.mockResolvedValue({ ...ended, message: 'loaded' });
    Object.assign(jobs, { isBusy: true }); // the list is only asked for
    (jobs.conditionChanged as Signal<IJobs, void>).emit();
    await settle();
    expect(api.get).toHaveBeenCalledTimes(2);
    Object.assign(jobs, { isBusy: false });
    (jobs.conditionChanged as Signal<IJobs, void>).emit();
    await settle();
    expect(model.loadedJob.error).toBeNull();
    expect(model.job).toMatchObject({ state: 'succeeded', message: 'loaded' });
    (jobs.conditionChanged as Signal<IJobs, void>).emit();
    await settle();
    expect(api.get).toHaveBeenCalledTimes(3);
    model.dispose();
  });

  it('does not ask again for a job that is not there', async () => {
    const { model, jobs, api } = create(job());
    await settle();
    const asked = api.get.mock.calls.length;
    api.get.mockRejectedValue(
      new ApiError('refused', 'no such job', '', 'not_found')
    );
    await model.refresh();
    (jobs.conditionChanged as Signal<IJobs, void>).emit();
    await settle();
    expect(api.get).toHaveBeenCalledTimes(asked + 1);
    model.dispose();
  });

  it('keeps what it knows of a deleted job', async () => {
    const { model, jobs } = create(job());
    await settle();
    jobs.get.mockReturnValue(undefined);
    jobs.find.mockRejectedValue(
      new ApiError('refused', 'no such job', '', 'not_found')
    );
    (jobs.removed as Signal<IJobs, string>).emit('study-aaaaaaaa');
    await settle();
    expect(model.isDeleted).toBe(true);
    expect(model.job).not.toBeNull();
    expect(model.loadedJob.error).toBeNull();
    model.dispose();
  });

  it('takes no job for deleted that the list only does not reach', async () => {
    const { model, jobs } = create(job());
    await settle();
    jobs.get.mockReturnValue(undefined);
    (jobs.removed as Signal<IJobs, string>).emit('other-aaaaaaaa');
    expect(jobs.find).not.toHaveBeenCalled();
    (jobs.removed as Signal<IJobs, string>).emit('study-aaaaaaaa');
    await settle();
    expect(jobs.find).toHaveBeenCalledWith('study-aaaaaaaa');
    expect(model.isDeleted).toBe(false);
    jobs.find.mockRejectedValue(new ApiError('unreachable', 'no answer'));
    (jobs.removed as Signal<IJobs, string>).emit('study-aaaaaaaa');
    await settle();
    expect(model.isDeleted).toBe(false);
    model.dispose();
  });
});

describe('Client', () => {
  it('exports a document, or says why not', async () => {
    const settings = ServerConnection.makeSettings({ baseUrl: 'http://a/' });
    const request = jest.spyOn(ServerConnection, 'makeRequest');
    const client = new Client(settings);
    const answer = {
      ok: true,
      status: 200,
      blob: () => Promise.resolve('page')
    };
    request.mockResolvedValueOnce(answer as unknown as Response);
    expect(await client.getExport('a-b', 'html', false)).toBe('page');
    expect(request.mock.calls[0]![0]).toBe(
      'http://a/jupyter-to-job/api/jobs/a-b/export?format=html&code=false'
    );
    const refusal = JSON.stringify({ error: { message: 'No PDF', hint: '' } });
    request.mockResolvedValueOnce(new Response(refusal, { status: 400 }));
    await expect(client.getExport('a-b', 'pdf', true)).rejects.toThrow(
      'No PDF'
    );
    request.mockRestore();
  });
});
