/** A sweep that is called off while it is sent: what the dialog says, and which jobs there are. */
import { Notification } from '@jupyterlab/apputils';
import { PromiseDelegate } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';

import { SubmitDialogs } from '../src/dialog/submitDialogs';
import { ApiError } from '../src/jobs/client';
import type { SweptJobs } from '../src/jobs/sweep';
import {
  DEFAULTS,
  type IPreferences,
  type Preferences
} from '../src/settings/preferences';
import { CATALOG, job, preflight, TRANS, until } from './fixtures';

const FAST = { name: 'fast', type: null, help: null };
const SWEPT = { group: 'night', jobs: [job(), job({ name: 'second' })] };
const WITHDRAWN = new ApiError('refused', 'Gone.', null, 'withdrawn');

afterEach(() => jest.restoreAllMocks());

const click = (selector: string) =>
  document.querySelector<HTMLElement>(`.jp-ToJobDialog ${selector}`)!.click();
const cancel = () => click('.jp-mod-reject');
const text = () => document.querySelector('.jp-ToJobDialog')?.textContent ?? '';

/** Open the dialog, and send a sweep over both values of a parameter, or one job. */
async function send(isSweep: boolean, toasts: Preferences['toasts'] = 'none') {
  const told: string[] = [];
  jest
    .spyOn(Notification, 'emit')
    .mockImplementation(message => String(told.push(message)));
  const answer = new PromiseDelegate<SweptJobs>();
  const parameters = [{ ...FAST, default: 'True', value: true }];
  const submit = jest.fn(async () => (await answer.promise).jobs[0]!);
  const submitSweep = jest.fn(() => answer.promise);
  const dialogs = new SubmitDialogs(
    {
      getHealth: () => Promise.reject(new Error()),
      getCatalog: () => Promise.resolve(CATALOG),
      checkSubmission: () => Promise.resolve(preflight({ parameters })),
      withdraw: () => Promise.resolve()
    },
    { all: [], copyProgressed: new Signal({}) } as never,
    'scope',
    TRANS,
    { current: { ...DEFAULTS, toasts } } as IPreferences
  );
  const submitted = dialogs.ask({
    path: 'study.ipynb',
    note: null,
    initialChoices: {},
    ignoresMemory: true,
    takesFiles: true,
    toSubmission: () => ({ notebook: 'study.ipynb' }),
    submit,
    submitSweep
  });
  const several = '[aria-label="Several values for fast"]';
  await until(() => document.querySelector(several) !== null);
  if (isSweep) {
    click(several);
    await until(() => text().includes('SEND 2 JOBS'));
  }
  click('.jp-mod-accept');
  const request = isSweep ? submitSweep : submit;
  await until(() => request.mock.calls.length > 0);
  return { answer, submitted, told };
}

it.each(['ends', 'failures', 'none'] as const)(
  'says how many jobs there are where %s are told of',
  async toasts => {
    const { answer, submitted, told } = await send(true, toasts);
    cancel();
    answer.resolve(SWEPT);
    expect(await submitted).toBe(SWEPT.jobs[0]);
    await until(() => told.length > 0);
    expect(told).toEqual(['2 jobs were submitted as the group night']);
  }
);

it('says so, too, if the dialog did not wait for the answer', async () => {
  const { answer, submitted, told } = await send(true);
  cancel();
  cancel();
  expect(await submitted).toBeNull();
  answer.resolve(SWEPT);
  await until(() => told.length > 0);
  expect(told).toEqual(['2 jobs were submitted as the group night']);
});

it.each([
  ['another notification says so', true, 'all'],
  ['nothing was called off', false, 'none']
] as const)('is silent where %s', async (_, isCalledOff, toasts) => {
  const { answer, submitted, told } = await send(true, toasts);
  if (isCalledOff) {
    cancel();
  }
  answer.resolve(SWEPT);
  await submitted;
  await Promise.resolve();
  expect(told).toEqual([]);
});

it.each([
  ['a job', false, 'Called off: nothing was submitted.'],
  ['a sweep, of which an earlier try may have made jobs', true, 'Called off.']
])('says in the dialog of %s what is known', async (_, isSweep, says) => {
  const { answer, submitted } = await send(isSweep);
  cancel();
  answer.reject(WITHDRAWN);
  await until(() => text().includes('Called off'));
  const status = document.querySelector('.jp-ToJobDialog [role=status]')!;
  expect(status.lastElementChild!.textContent).toBe(says);
  cancel();
  expect(await submitted).toBeNull();
});
