/** Submissions whose answer is lost: sent again, they stay one job. */
import { Notification } from '@jupyterlab/apputils';
import { CommandRegistry } from '@lumino/commands';

import { SubmitDialogs } from '../src/dialog/submitDialogs';
import { addGroupCommands, GroupCommandIDs } from '../src/groupCommands';
import {
  addJobCommands,
  CommandIDs,
  type CommandServices
} from '../src/jobCommands';
import {
  ApiError,
  type IDialogApi,
  type IJobsApi,
  type IJournalApi
} from '../src/jobs/client';
import type { Choices, Job } from '../src/jobs/job';
import { Jobs } from '../src/jobs/model';
import type { INotebookSource } from '../src/source';
import {
  createFileSource,
  type SourceServices
} from '../src/submit/notebookSource';
import { createRerunSource } from '../src/submit/rerunSource';
import { CATALOG, job, preflight, TRANS, until } from './fixtures';
import { Server } from './jobsServer';

const LOST = new ApiError('unreachable', 'HTTP 504');
const AWAY = new ApiError('refused', 'Away.', '', 'unavailable');
const STALE = new ApiError('refused', 'Changed.', '', 'stale');
const OTHER = new ApiError('refused', 'Another submission.', '', 'conflict');

/** The source of a notebook on disk, which is not open. */
function createStudySource(jobs: Jobs, choices: Choices = {}): INotebookSource {
  const contents = { driveName: () => '', localPath: (path: string) => path };
  const services = { contents, jobs } as unknown as SourceServices;
  return createFileSource('study.ipynb', false, choices, services);
}

function open(...answers: (ApiError | null)[]) {
  const keys: string[] = [];
  let newest = job({ flavor: 'gpu' });
  const dialogs = new SubmitDialogs(
    {} as IDialogApi,
    { all: [newest], getNewestOf: () => newest } as never,
    'scope',
    TRANS
  );
  /** Each press of a button has a source of its own. */
  const source = (
    path = 'study.ipynb',
    expected_sha256 = 'a',
    initialChoices: Choices = {}
  ): INotebookSource => ({
    path,
    note: null,
    initialChoices,
    takesFiles: true,
    toSubmission: () => ({ notebook: path, expected_sha256 }),
    submit: (_, key) => {
      keys.push(key);
      const failure = answers.shift();
      return failure ? Promise.reject(failure) : Promise.resolve(job());
    }
  });
  const arrive = (arrived: Job) => (newest = arrived);
  return { dialogs, keys, source, arrive };
}

describe.each(['submit', 'submitAgain'] as const)('%s', method => {
  it.each([
    ['lost', LOST],
    ['unknown to a controller that is away', AWAY]
  ])('keeps its key while its answer is %s', async (_, failure) => {
    const { dialogs, keys, source } = open(failure, failure);
    const send = () => dialogs[method](source());
    await expect(send()).rejects.toBe(failure);
    await expect(send()).rejects.toBe(failure);
    expect((await send()).name).toBe(job().name);
    await send(); // it was answered: this is one more job
    expect(keys[1]).toBe(keys[0]);
    expect(keys[2]).toBe(keys[0]);
    expect(keys[3]).not.toBe(keys[0]);
  });

  it('keeps its key when the job arrives and the answer does not', async () => {
    const { dialogs, keys, source, arrive } = open(LOST);
    await expect(dialogs[method](source())).rejects.toBe(LOST);
    arrive(job({ flavor: 'small', max_runtime: 60 }));
    await dialogs[method](source());
    expect(keys[1]).toBe(keys[0]);
  });

  it('takes a new key after a refusal', async () => {
    const { dialogs, keys, source } = open(STALE);
    await expect(dialogs[method](source())).rejects.toBe(STALE);
    await dialogs[method](source());
    expect(keys[1]).not.toBe(keys[0]);
  });

  it('takes a new key for another notebook, content or choice', async () => {
    const { dialogs, keys, source } = open(LOST, LOST, LOST, LOST);
    for (const sent of [
      source(),
      source('other.ipynb'),
      source('study.ipynb', 'b'),
      source('study.ipynb', 'b', { flavor: 'large' })
    ]) {
      await expect(dialogs[method](sent)).rejects.toBe(LOST);
    }
    expect(new Set(keys).size).toBe(4);
  });

  it('is another job where the server knows the key for another content', async () => {
    const { dialogs, keys, source } = open(LOST, OTHER);
    await expect(dialogs[method](source())).rejects.toBe(LOST);
    await dialogs[method](source());
    expect(keys[1]).toBe(keys[0]);
    expect(keys[2]).not.toBe(keys[0]);
    expect(keys).toHaveLength(3);
  });

  /**
   * Submit without an answer, and again once the page has the job that was made, and a newer one.
   *
   * @param minutes how long after the lost answer it is submitted again
   * @param meanwhile runs while the notebook is saved for the second time
   */
  async function resubmit(
    made: Job,
    newer: Job,
    minutes: number,
    meanwhile: (jobs: Jobs) => void = () => {}
  ) {
    const newest = job({ name: 'study-3', submitted: '3' });
    const server = new Server([LOST, made, newest]);
    const submit = jest.spyOn(server, 'submit');
    const jobs = new Jobs(server, []);
    const told: string[] = [];
    jobs.submitted.connect((_, { name }) => told.push(name));
    const dialogs = new SubmitDialogs({} as IDialogApi, jobs, 'scope', TRANS);
    const send = (save = () => {}) =>
      dialogs[method]({
        ...createStudySource(jobs, { priority: 1 }),
        get ready() {
          return Promise.resolve().then(save);
        }
      });
    jobs.update(job({ name: 'study-0', submitted: '0', flavor: 'small' }));
    await expect(send()).rejects.toBe(LOST);
    jobs.update(made);
    jobs.update(newer);
    const later = Date.now() + minutes * 60_000;
    const clock = jest.spyOn(Date, 'now').mockReturnValue(later);
    const { name } = await send(() => meanwhile(jobs));
    clock.mockRestore();
    const flavors = submit.mock.calls.map(
      ([submission]) => (submission as Choices).flavor
    );
    return { name, told, keys: server.keys, flavors };
  }

  const MADE = { name: 'study-1', submitted: '1', flavor: 'small' };
  const NEWER = job({ name: 'study-2', submitted: '2', flavor: 'gpu' });

  it('is the same job soon after, also if that one has ended', async () => {
    const ended = job({ ...MADE, state: 'succeeded' });
    const { name, told, keys } = await resubmit(ended, NEWER, 4);
    expect([name]).toEqual(told);
    expect(name).toBe('study-1');
    expect(keys).toEqual([keys[0], keys[0]]);
  });

  it('is a new job later, once the one without an answer was seen to end', async () => {
    const ended = job({ ...MADE, state: 'failed' });
    const { name, told, keys, flavors } = await resubmit(ended, NEWER, 6);
    expect(name).toBe('study-3');
    expect(told).toEqual(['study-3']);
    expect(keys[1]).toBe(keys[0]);
    expect(keys[2]).not.toBe(keys[0]);
    const remembered = ['small', 'small', 'gpu'];
    expect(flavors).toEqual(
      method === 'submitAgain' ? remembered : Array(3).fill(undefined)
    );
  });

  it('is the same job as long as that one runs', async () => {
    const running = job({ ...MADE, state: 'running' });
    const { name, told, keys } = await resubmit(running, NEWER, 6);
    expect([name]).toEqual(told);
    expect(name).toBe('study-1');
    expect(keys).toEqual([keys[0], keys[0]]);
  });

  it('is the same job, and told, if that one ends while it is saved', async () => {
    const running = job({ ...MADE, state: 'running' });
    const ended = job({ ...MADE, state: 'failed' });
    const { name, told, keys } = await resubmit(running, NEWER, 6, jobs =>
      jobs.update(ended)
    );
    expect(name).toBe('study-1');
    expect(told).toEqual(['study-1']);
    expect(keys).toEqual([keys[0], keys[0]]);
  });
});

it.each(['a submission', 'a rerun'])(
  'tells of %s that is sent twice in the dialog, though its job has ended',
  async what => {
    const ended = job({ name: 'study-2', submitted: '2', state: 'failed' });
    const server = new Server([LOST, ended]);
    const jobs = new Jobs(server, []);
    const told: string[] = [];
    jobs.submitted.connect((_, { name }) => told.push(name));
    const api = {
      getHealth: () => Promise.reject(new Error()),
      getCatalog: () => Promise.resolve(CATALOG),
      checkSubmission: () => Promise.resolve(preflight())
    };
    const dialogs = new SubmitDialogs(
      api as unknown as IDialogApi,
      jobs,
      'scope',
      TRANS
    );
    const journal = { getNotebook: () => Promise.reject(new Error()) };
    const source =
      what === 'a rerun'
        ? await createRerunSource(
            job({ name: 'study-1', submitted: '1' }),
            jobs,
            journal as unknown as IJournalApi,
            TRANS
          )
        : createStudySource(jobs);
    const dialog = () => document.querySelector('.jp-ToJobDialog');
    const send = () =>
      dialog()!.querySelector<HTMLElement>('.jp-mod-accept')!.click();
    const submitted = dialogs.ask(source);
    await until(() => dialog() !== null);
    send();
    const isLost = () =>
      dialog()!.textContent.includes('Sending again is safe');
    await until(isLost);
    expect(isLost()).toBe(true);
    jobs.update(ended);
    send();
    expect((await submitted)?.name).toBe('study-2');
    expect(told).toEqual(['study-2']);
    expect(server.keys).toEqual([server.keys[0], server.keys[0]]);
  }
);

it('does not send a refusal again that is not about its key', async () => {
  const { dialogs, keys, source } = open(OTHER);
  await expect(dialogs.submit(source())).rejects.toBe(OTHER);
  expect(keys).toHaveLength(1);
});

it.each([
  [CommandIDs.rerun, { name: 'study-1' }],
  [GroupCommandIDs.rerunFailed, { group: 'night' }]
])(
  '%s keeps its key, and says that pressing again is safe',
  async (id, args) => {
    const emit = jest.spyOn(Notification, 'emit').mockReturnValue('');
    const keys: string[] = [];
    const rerun = (_: string, __: unknown, key: string) =>
      keys.push(key) === 1
        ? Promise.reject(AWAY)
        : Promise.resolve(job({ rerun_of: 'study-1', group: 'night' }));
    const list = () => Promise.resolve({ jobs: [], next: null });
    const jobs = new Jobs({ rerun, list } as unknown as IJobsApi, []);
    jobs.update(job({ name: 'study-1', group: 'night', state: 'failed' }));
    const commands = new CommandRegistry();
    const services = {
      commands,
      jobs,
      trans: TRANS
    } as unknown as CommandServices;
    addJobCommands(services);
    addGroupCommands(services);
    await commands.execute(id, args);
    expect(emit.mock.calls.map(([text]) => text)).toEqual([
      'Away. Sending again is safe: it stays one job.'
    ]);
    await commands.execute(id, args);
    expect(keys).toHaveLength(2);
    expect(keys[1]).toBe(keys[0]);
    emit.mockRestore();
  }
);

describe('an error of a rerun', () => {
  const REFUSED = new ApiError('refused', 'Its snapshot is gone.');

  afterEach(() => jest.restoreAllMocks());

  /** Run a command; returns what is told. `failures` are by the names of jobs. */
  async function tell(
    id: string,
    args: Record<string, string>,
    failures: Record<string, ApiError>,
    read: () => Promise<unknown> = () =>
      Promise.resolve({ jobs: [], next: null })
  ): Promise<unknown[]> {
    const told: unknown[] = [];
    jest
      .spyOn(Notification, 'emit')
      .mockImplementation(text => String(told.push(text)));
    const rerun = (name: string) =>
      failures[name] === undefined
        ? Promise.resolve(job({ name: `${name}-again` }))
        : Promise.reject(failures[name]);
    const client = { rerun, list: read, get: read };
    const jobs = new Jobs(client as unknown as IJobsApi, []);
    for (const name of ['a', 'b', 'c']) {
      jobs.update(job({ name, group: 'night', state: 'failed' }));
    }
    const commands = new CommandRegistry();
    const services = { commands, jobs, trans: TRANS };
    addJobCommands(services as unknown as CommandServices);
    addGroupCommands(services as unknown as CommandServices);
    await commands.execute(id, args);
    return told;
  }

  const rerunFailed = (failures: Record<string, ApiError>) =>
    tell(GroupCommandIDs.rerunFailed, { group: 'night' }, failures);

  it('does not say of a group that nothing was submitted', async () => {
    expect(await rerunFailed({ b: REFUSED })).toEqual([
      '1 of 3 jobs were not rerun: Its snapshot is gone.'
    ]);
  });

  it('says of how many jobs of a group it is not known what became', async () => {
    expect(await rerunFailed({ a: AWAY, c: AWAY })).toEqual([
      'It is not known whether 2 of 3 jobs were rerun: Away. Sending again is safe: it stays one job.'
    ]);
  });

  it('says what was refused, and what may have been done', async () => {
    expect(await rerunFailed({ a: REFUSED, c: AWAY })).toEqual([
      '1 of 3 jobs were not rerun: Its snapshot is gone. It is not known whether 1 of 3 jobs were rerun: Away. Sending again is safe: it stays one job.'
    ]);
  });

  it('says of one job that it was not submitted', async () => {
    const failures = { a: REFUSED };
    expect(await tell(CommandIDs.rerun, { name: 'a' }, failures)).toEqual([
      'Not submitted: Its snapshot is gone.'
    ]);
  });

  it.each([
    [CommandIDs.rerun, { name: 'not-loaded' }],
    [GroupCommandIDs.rerunFailed, { group: 'night' }]
  ])('%s says nothing of a submission before one is sent', async (id, args) => {
    const read = () => Promise.reject(AWAY);
    expect(await tell(id, args, {}, read)).toEqual(['Away.']);
  });
});
