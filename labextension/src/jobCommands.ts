/** What can be done with a job: one command each, of which every one takes the job's name. */
import { Clipboard, Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type {
  ReadonlyJSONObject,
  ReadonlyPartialJSONObject
} from '@lumino/coreutils';

import type { IReader } from './jobs/client';
import { commandLine } from './jobs/commandLine';
import { isFinal, type Job, resultOf } from './jobs/job';
import { rerunSource } from './submit/rerunSource';
import type { IJobs, ISubmitDialog } from './tokens';
import { tellRefusal } from './ui/errors';
import { openResult } from './ui/openResult';
import { toast } from './ui/toast';

/** The commands, by what they do. */
export const JOB = {
  open: 'jupyter-to-job:open-result',
  watch: 'jupyter-to-job:watch',
  logs: 'jupyter-to-job:logs',
  cancel: 'jupyter-to-job:cancel',
  rerun: 'jupyter-to-job:rerun',
  rerunWith: 'jupyter-to-job:rerun-with-changes',
  deliver: 'jupyter-to-job:deliver',
  copy: 'jupyter-to-job:copy-command',
  delete: 'jupyter-to-job:delete'
} as const;

/** Those that ask before something is lost. */
const ASKING: readonly string[] = [JOB.cancel, JOB.delete];

/** What the commands work with. */
export type Means = {
  commands: CommandRegistry;
  jobs: IJobs;
  reader: IReader;
  dialog: ISubmitDialog | null;
  trans: TranslationBundle;
};

type Action = {
  id: string;
  label: string;
  caption: string;
  /** Whether it makes sense for the job. */
  suits: (job: Job) => boolean;
  act: (job: Job, args: ReadonlyPartialJSONObject) => Promise<unknown>;
};

/** Add the commands, but for those that open a view of their own. */
export function addJobCommands(means: Means): void {
  [...shown(means), ...ended(means), ...again(means)].forEach(action =>
    add(means, action)
  );
}

/** What commands of jobs take, as a JSON schema; `asks`: those that ask before something is lost. */
export function describeJob(
  trans: TranslationBundle,
  asks = false
): ReadonlyJSONObject {
  const ask = {
    type: 'boolean',
    description: trans.__(
      'Whether to ask before something is lost: true if left out'
    )
  };
  return {
    type: 'object',
    properties: {
      name: { type: 'string', description: trans.__("The job's name") },
      ...(asks ? { ask } : {})
    },
    required: ['name']
  };
}

/** The job's name among a command's arguments. */
export function nameOf(args: ReadonlyPartialJSONObject): string {
  return typeof args.name === 'string' ? args.name : '';
}

function add(means: Means, { id, label, caption, suits, act }: Action): void {
  const { commands, jobs, trans } = means;
  const known = (args: ReadonlyPartialJSONObject) => jobs.get(nameOf(args));
  commands.addCommand(id, {
    label,
    caption,
    describedBy: { args: describeJob(trans, ASKING.includes(id)) },
    isVisible: args => known(args) !== undefined && suits(known(args)!),
    // One that is not known yet is asked for.
    isEnabled: args =>
      nameOf(args) !== '' && (known(args) === undefined || suits(known(args)!)),
    execute: async args => {
      try {
        return await act(await jobs.find(nameOf(args)), args);
      } catch (error) {
        tellRefusal(error, trans, false);
        return null;
      }
    }
  });
}

function shown(means: Means): Action[] {
  const { commands, jobs, trans } = means;
  return [
    {
      id: JOB.open,
      label: trans.__('Open Result'),
      caption: trans.__('Open the executed notebook'),
      suits: job => resultOf(job) !== null,
      act: job => openResult(commands, resultOf(job) ?? '', trans)
    },
    {
      id: JOB.deliver,
      label: trans.__('Deliver Result'),
      caption: trans.__('Try again to put the result beside its source'),
      suits: ({ delivery }) => delivery.state === 'held',
      act: async ({ name }) => tellDelivery(await jobs.deliver(name), means)
    },
    {
      id: JOB.copy,
      label: trans.__('Copy Command'),
      caption: trans.__('Copy the command that submits the same in a terminal'),
      suits: () => true,
      act: job => {
        const text = commandLine(job);
        Clipboard.copyToSystem(text);
        toast({ type: 'info', text: trans.__('Copied: %1', text) }, trans);
        return Promise.resolve(text);
      }
    }
  ];
}

/** Say what became of a second try: the job's end was told before. */
function tellDelivery(job: Job, { commands, trans }: Means): Job {
  const { name, delivery } = job;
  const path = resultOf(job);
  if (path !== null) {
    const open = {
      label: trans.__('Open'),
      callback: () => void openResult(commands, path, trans)
    };
    const text = trans.__('The result of %1 was delivered', name);
    toast({ type: 'success', text, actions: [open] }, trans);
  } else if (delivery.state === 'held') {
    const text = trans.__('Not delivered: %1', delivery.message ?? '');
    toast({ type: 'warning', text }, trans);
  }
  return job;
}

function ended({ jobs, trans }: Means): Action[] {
  return [
    {
      id: JOB.cancel,
      label: trans.__('Cancel Job'),
      caption: trans.__('End the run; what it wrote so far is delivered'),
      suits: job => !isFinal(job) && !job.cancel_requested,
      act: async (job, { ask }) => {
        const isSure =
          ask === false ||
          job.state === 'queued' ||
          (await isConfirmed({
            title: trans.__('Cancel %1?', job.name),
            body: trans.__(
              'The run ends. What it wrote so far is delivered as a notebook.'
            ),
            yes: trans.__('Cancel Job'),
            no: trans.__('Go On Running')
          }));
        return isSure ? jobs.cancel(job.name) : null;
      }
    },
    {
      id: JOB.delete,
      label: trans.__('Delete Job…'),
      caption: trans.__('Forget the job; a delivered notebook stays'),
      suits: () => true,
      act: async (job, { ask }) => {
        const body = isFinal(job)
          ? trans.__(
              'Its logs are gone then, and it cannot be rerun. A delivered notebook stays.'
            )
          : trans.__('It is ended, and nothing of it is delivered.');
        const isSure =
          ask === false ||
          (await isConfirmed({
            title: trans.__('Delete %1?', job.name),
            body,
            yes: trans.__('Delete Job'),
            no: trans.__('Keep It')
          }));
        return isSure ? jobs.delete(job.name) : null;
      }
    }
  ];
}

function again({ jobs, reader, dialog, trans }: Means): Action[] {
  return [
    {
      id: JOB.rerun,
      label: trans.__('Rerun'),
      caption: trans.__('Run it again as it was frozen: a new job'),
      suits: isFinal,
      act: job => jobs.rerun(job.name)
    },
    {
      id: JOB.rerunWith,
      label: trans.__('Rerun with Changes…'),
      caption: trans.__('Run what was frozen again, with other choices'),
      suits: job => dialog !== null && isFinal(job),
      act: async job =>
        dialog?.ask(await rerunSource(job, jobs, reader, trans)) ?? null
    }
  ];
}

type Question = { title: string; body: string; yes: string; no: string };

async function isConfirmed({
  title,
  body,
  yes,
  no
}: Question): Promise<boolean> {
  const { button } = await showDialog({
    title,
    body,
    defaultButton: 0, // Enter loses nothing.
    buttons: [
      Dialog.cancelButton({ label: no }),
      Dialog.warnButton({ label: yes })
    ]
  });
  return button.accept;
}
