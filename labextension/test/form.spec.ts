/** The submit dialog on the screen: what is typed into its fields. */
import { Signal } from '@lumino/signaling';

import type { Parameter } from '../src/api';
import { SubmitDialogs } from '../src/dialog/submitDialogs';
import type { Choices } from '../src/jobs/job';
import { CATALOG, job, preflight, TRANS, until } from './fixtures';

const find = <T extends Element>(selector: string) =>
  document.querySelector<T>(`.jp-ToJobDialog ${selector}`);

/** Open the dialog of a notebook with these parameters, and keep what is sent. */
async function open(parameters: Parameter[] = []): Promise<Choices[]> {
  const sent: Choices[] = [];
  const dialogs = new SubmitDialogs(
    {
      getHealth: () => Promise.reject(new Error()),
      getCatalog: () => Promise.resolve(CATALOG),
      checkSubmission: () => Promise.resolve(preflight({ parameters })),
      withdraw: () => Promise.resolve()
    },
    { all: [], copyProgressed: new Signal({}) } as never,
    'scope',
    TRANS
  );
  void dialogs.ask({
    path: 'study.ipynb',
    note: null,
    initialChoices: {},
    ignoresMemory: true,
    takesFiles: true,
    toSubmission: () => ({ notebook: 'study.ipynb' }),
    submit: choices => {
      sent.push(choices);
      return Promise.resolve(job());
    }
  });
  await until(() => find('input[name=jp-ToJobDialog-flavor]') !== null);
  return sent;
}

/** Type into a field, as a user does: it has the focus. */
function type(field: HTMLInputElement | HTMLTextAreaElement, text: string) {
  field.focus();
  const { set } = Object.getOwnPropertyDescriptor(
    Object.getPrototypeOf(field),
    'value'
  )!;
  set!.call(field, text);
  field.dispatchEvent(new Event('input', { bubbles: true }));
}

/** Click, which moves the focus first. */
function click(selector: string) {
  const button = find<HTMLElement>(selector)!;
  button.focus();
  button.click();
}

const send = () => click('.jp-ToJobDialog-send');
const isClosed = () => document.querySelector('.jp-ToJobDialog') === null;

it.each([
  ['data/*.csv', ['data/*.csv']],
  ['  ', undefined]
])('sends a file whose path was only typed: "%s"', async (path, inputs) => {
  const sent = await open();
  type(find<HTMLInputElement>('input[data-enter=own]')!, path);
  send();
  await until(isClosed);
  expect(sent.map(choices => choices.inputs)).toEqual([inputs]);
});

it('leaves a path in its field while another window has the focus', async () => {
  const sent = await open();
  const field = find<HTMLInputElement>('input[data-enter=own]')!;
  type(field, 'data/*');
  field.dispatchEvent(new FocusEvent('focusout', { bubbles: true }));
  expect(field.value).toBe('data/*');
  type(field, 'data/*.csv');
  send();
  await until(isClosed);
  expect(sent[0]!.inputs).toEqual(['data/*.csv']);
});

it('keeps the line breaks of a parameter', async () => {
  const value = 'select 1 -- one\nfrom t';
  const sql = { name: 'sql', type: null, help: null, default: '…', value };
  const sent = await open([sql]);
  const field = () =>
    find<HTMLTextAreaElement>('.jp-ToJobDialog-parameter .jp-mod-styled')!;
  await until(() => field() !== null);
  expect(field().value).toBe(value);
  const first = field();
  type(first, 'select 1');
  expect(field()).toBe(first); // it has the focus still
  type(first, `${value} where 1`);
  send();
  await until(isClosed);
  expect(sent[0]!.parameters).toEqual({ sql: `${value} where 1` });
});
