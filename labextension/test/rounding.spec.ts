/** Whole numbers that the browser cannot keep exactly are neither sent nor written. */
import { Clipboard, Notification } from '@jupyterlab/apputils';
import { CommandRegistry } from '@lumino/commands';

import { SubmitDialogs } from '../src/dialog/submitDialogs';
import {
  addJobCommands,
  CommandIDs,
  type CommandServices
} from '../src/jobCommands';
import type { IDialogApi, IJournalApi } from '../src/jobs/client';
import type { Choices, Job } from '../src/jobs/job';
import type { INotebookSource } from '../src/source';
import { SUBMIT } from '../src/submit/submitArguments';
import { useParameters } from '../src/submit/useParameters';
import { CannotSubmit } from '../src/ui/errors';
import { job, preflight, TRANS } from './fixtures';

const LARGE = JSON.parse('{"user_id": 1234567890123456789}') as object;
const FLOAT = { doping: 5e17 };

describe('Submit Job with the Last Choices', () => {
  /** What is sent of the choices of the newest job. */
  async function sendAgain(parameters: object, initialChoices: Choices = {}) {
    const sent: Choices[] = [];
    const newest = job({ parameters: parameters as Job['parameters'] });
    const declared = {
      name: 'doping',
      type: null,
      default: '1e17',
      value: 1e17,
      help: null
    };
    const checkSubmission = () =>
      Promise.resolve(preflight({ parameters: [declared] }));
    const dialogs = new SubmitDialogs(
      { checkSubmission } as unknown as IDialogApi,
      { all: [newest], getNewestOf: () => newest } as never,
      'scope',
      TRANS
    );
    const source: INotebookSource = {
      path: 'study.ipynb',
      note: null,
      initialChoices,
      takesFiles: true,
      toSubmission: () => ({ notebook: 'study.ipynb' }),
      submit: choices => {
        sent.push(choices);
        return Promise.resolve(job());
      }
    };
    await dialogs.submitAgain(source);
    return sent.map(choices => choices.parameters);
  }

  it('refuses a rounded number, and says which', async () => {
    await expect(sendAgain(LARGE)).rejects.toThrow(CannotSubmit);
    await expect(sendAgain(LARGE)).rejects.toThrow('user_id');
  });

  it('sends a large float where the notebook has one', async () => {
    expect(await sendAgain(FLOAT)).toEqual([FLOAT]);
  });

  it('sends the parameters of the call instead', async () => {
    const parameters = { user_id: 7 };
    expect(await sendAgain(LARGE, { parameters })).toEqual([parameters]);
  });
});

describe('the commands of a job', () => {
  it.each([CommandIDs.submitCurrent, CommandIDs.copy])(
    '%s refuses a rounded number',
    async id => {
      const commands = new CommandRegistry();
      const submitted: unknown[] = [];
      commands.addCommand(SUBMIT, { execute: args => submitted.push(args) });
      const copy = jest.spyOn(Clipboard, 'copyToSystem').mockReturnValue();
      const tell = jest.spyOn(Notification, 'emit').mockReturnValue('');
      const old = job({
        parameters: LARGE as Job['parameters'],
        state: 'succeeded'
      });
      addJobCommands({
        commands,
        jobs: { get: () => old, find: () => Promise.resolve(old) },
        trans: TRANS
      } as unknown as CommandServices);
      expect(await commands.execute(id, { name: old.name })).toBeNull();
      expect([submitted, copy.mock.calls]).toEqual([[], []]);
      const [text, type] = tell.mock.calls[0]!;
      expect([text, type]).toEqual([
        expect.stringContaining('user_id'),
        'error'
      ]);
    }
  );
});

describe('Copy Parameters into Notebook', () => {
  /** What is in the parameters cell afterwards. */
  async function copyInto(getNotebook: () => Promise<unknown>) {
    let source = 'user_id = 1';
    const cell = {
      metadata: { tags: ['parameters'] },
      getSource: () => source,
      transact: (change: () => void) => change(),
      updateSource: (start: number, end: number, text: string) => {
        source = source.slice(0, start) + text + source.slice(end);
      }
    };
    const metadata = { language_info: { name: 'python' } };
    const sharedModel = { metadata, cells: [cell], getCell: () => cell };
    const panel = {
      content: { model: { sharedModel }, scrollToItem: () => undefined },
      context: { model: { sharedModel } },
      revealed: Promise.resolve()
    };
    const commands = { execute: () => Promise.resolve(panel) };
    const old = job({
      parameters: { ...LARGE, rate: 0.5 }
    });
    const services = {
      commands: commands as unknown as CommandRegistry,
      journalApi: { getNotebook } as unknown as IJournalApi,
      trans: TRANS
    };
    const failure = await useParameters(old, services).catch(
      (error: unknown) => error
    );
    return { failure, source };
  }

  it('takes the number from the result', async () => {
    const source = '# Parameters\nuser_id = 1234567890123456789\nrate = 0.5\n';
    const metadata = { tags: ['injected-parameters'] };
    const cells = [{ source, metadata }];
    const copied = await copyInto(() => Promise.resolve({ cells }));
    expect(copied).toEqual({
      failure: undefined,
      source: 'user_id = 1234567890123456789\nrate = 0.5'
    });
  });

  it('writes nothing where the result is gone', async () => {
    const copied = await copyInto(() => Promise.reject(new Error('gone')));
    expect(copied.source).toBe('user_id = 1');
    expect(copied.failure).toBeInstanceOf(CannotSubmit);
    expect(String(copied.failure)).toContain('user_id');
  });
});
