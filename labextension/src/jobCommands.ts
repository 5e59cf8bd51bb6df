/** The commands that act on one job. Each takes the job's name as its argument. */
import {
  Clipboard,
  Dialog,
  Notification,
  showDialog
} from '@jupyterlab/apputils';
import type { Contents } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type {
  ReadonlyJSONObject,
  ReadonlyPartialJSONObject
} from '@lumino/coreutils';

import type { IExportApi, IJournalApi } from './jobs/client';
import { formatCommandLine } from './jobs/commandLine';
import { choicesOfJob, isFinal, type Job, resultPath } from './jobs/job';
import type { IPreferences } from './settings/preferences';
import { createRerunSource } from './submit/rerunSource';
import { SUBMIT } from './submit/submitArguments';
import type { IJobs, ISubmitDialog } from './tokens';
import { showError } from './ui/errors';
import { openActions, openResult, openSource } from './ui/openResult';
import { requireExact } from './ui/rounding';
import { saveFile } from './ui/saveFile';
import { showToast } from './ui/toast';
import { ViewCommandIDs } from './viewCommands';

export const CommandIDs = {
  showJobs: 'jupyter-to-job:show-jobs',
  desktop: 'jupyter-to-job:desktop-notifications',
  showTable: 'jupyter-to-job:show-table',
  open: 'jupyter-to-job:open-result',
  watch: 'jupyter-to-job:watch',
  logs: 'jupyter-to-job:logs',
  cancel: 'jupyter-to-job:cancel',
  source: 'jupyter-to-job:open-source',
  sourceCell: 'jupyter-to-job:source-cell',
  bringBack: 'jupyter-to-job:bring-back',
  openWithoutOutputs: 'jupyter-to-job:open-without-outputs',
  submitCurrent: 'jupyter-to-job:submit-current',
  rerun: 'jupyter-to-job:rerun',
  rerunWith: 'jupyter-to-job:rerun-with-changes',
  deliver: 'jupyter-to-job:deliver',
  exportHtml: 'jupyter-to-job:export-html',
  copy: 'jupyter-to-job:copy-command',
  delete: 'jupyter-to-job:delete'
} as const;

export type CommandServices = {
  commands: CommandRegistry;
  jobs: IJobs;
  journalApi: IJournalApi;
  exportApi: IExportApi;
  dialog: ISubmitDialog | null;
  preferences: IPreferences;
  contents?: Contents.IManager;
  trans: TranslationBundle;
};

type JobAction = {
  id: string;
  label: string;
  caption: string;
  appliesTo: (job: Job) => boolean;
  /** What to ask before it runs, unless the argument `ask` or this setting is false. */
  confirmation?: 'confirmCancel' | 'confirmDelete';
  question?: (job: Job) => Question | null;
  run: (job: Job) => Promise<unknown>;
  /** Whether it makes a job; errors say what that means. */
  isSubmission?: true;
};

/** The command that shows a job: its details, or else its result, or else what it writes. */
export function mainCommandOf(job: Job, commands: CommandRegistry): string {
  if (commands.hasCommand(ViewCommandIDs.details)) {
    return ViewCommandIDs.details;
  }
  return resultPath(job) === null ? CommandIDs.watch : CommandIDs.open;
}

/** Add all commands except those that open a view, which their plugin adds. */
export function addJobCommands(services: CommandServices): void {
  [
    ...resultActions(services),
    exportAction(services),
    ...endingActions(services),
    ...sourceActions(services),
    ...rerunActions(services)
  ].forEach(action => addCommand(services, action));
}

/**
 * The arguments of a job's command as a JSON schema; `hasAsk` for commands that ask for
 * confirmation.
 */
export function describeJobArguments(
  trans: TranslationBundle,
  hasAsk = false
): ReadonlyJSONObject {
  const ask = {
    type: 'boolean',
    description: trans.__(
      'Whether to ask before something is lost; if left out the setting counts'
    )
  };
  return {
    type: 'object',
    properties: {
      name: { type: 'string', description: trans.__("The job's name") },
      ...(hasAsk ? { ask } : {})
    },
    required: ['name']
  };
}

export function jobNameOf(args: ReadonlyPartialJSONObject): string {
  return typeof args.name === 'string' ? args.name : '';
}

function addCommand(services: CommandServices, action: JobAction): void {
  const { id, label, caption, appliesTo, confirmation, question, run } = action;
  const { commands, jobs, preferences, trans } = services;
  const asksFirst = ({ ask }: ReadonlyPartialJSONObject) =>
    typeof ask === 'boolean'
      ? ask
      : confirmation === undefined || preferences.current[confirmation];
  const findJob = (args: ReadonlyPartialJSONObject) =>
    jobs.get(jobNameOf(args));
  commands.addCommand(id, {
    label,
    caption,
    describedBy: {
      args: describeJobArguments(trans, question !== undefined)
    },
    isVisible: args => findJob(args) !== undefined && appliesTo(findJob(args)!),
    // A job that is not loaded yet is requested on execution.
    isEnabled: args =>
      jobNameOf(args) !== '' &&
      (findJob(args) === undefined || appliesTo(findJob(args)!)),
    execute: async args => {
      let isSubmission = false;
      try {
        const job = await jobs.find(jobNameOf(args));
        const asked = asksFirst(args) ? question?.(job) : null;
        if (asked && !(await isConfirmed(asked))) {
          return null;
        }
        isSubmission = action.isSubmission ?? false;
        return await run(job);
      } catch (error) {
        showError(error, trans, isSubmission);
        return null;
      }
    }
  });
}

function resultActions(services: CommandServices): JobAction[] {
  const { commands, contents, jobs, trans } = services;
  return [
    {
      id: CommandIDs.open,
      label: trans.__('Open Result'),
      caption: trans.__('Open the executed notebook'),
      appliesTo: job => resultPath(job) !== null,
      run: job =>
        openResult(commands, resultPath(job) ?? '', trans, {
          name: job.name,
          contents
        })
    },
    {
      id: CommandIDs.deliver,
      label: trans.__('Deliver Result'),
      caption: trans.__('Try again to put the result beside its source'),
      appliesTo: ({ delivery }) => delivery.state === 'held',
      run: async ({ name }) =>
        notifyDelivery(await jobs.deliver(name), services)
    },
    {
      id: CommandIDs.copy,
      label: trans.__('Copy Command'),
      caption: trans.__('Copy the command that submits the same in a terminal'),
      appliesTo: () => true,
      run: job => {
        requireExact(Object.entries(job.parameters), trans);
        const text = formatCommandLine(job);
        Clipboard.copyToSystem(text);
        showToast({ type: 'info', text: trans.__('Copied: %1', text) }, trans);
        return Promise.resolve(text);
      }
    }
  ];
}

/** Saves a document of the result; the details offer it without code, too, and as PDF. */
function exportAction({ exportApi, trans }: CommandServices): JobAction {
  return {
    id: CommandIDs.exportHtml,
    label: trans.__('Download as HTML'),
    caption: trans.__('Save the executed notebook as an HTML document'),
    appliesTo: ({ started }) => started !== null,
    run: async ({ name }) => {
      const text = trans.__('The document is being made…');
      const notice = showToast({ type: 'in-progress', text }, trans);
      try {
        const file = await exportApi.getExport(name, 'html', true);
        saveFile(file, `${name}.html`, trans);
      } finally {
        Notification.dismiss(notice);
      }
    }
  };
}

/** Notify the user of the outcome of a second delivery: the job's end was notified before. */
function notifyDelivery(
  job: Job,
  { commands, contents, trans }: CommandServices
): Job {
  const { name, delivery } = job;
  const actions = openActions(job, commands, trans, contents);
  if (resultPath(job) !== null) {
    const text = trans.__('The result of %1 was delivered', name);
    showToast({ type: 'success', text, actions }, trans);
  } else if (delivery.state === 'held') {
    const text = trans.__('Not delivered: %1', delivery.message ?? '');
    showToast({ type: 'warning', text, actions }, trans);
  }
  return job;
}

function endingActions({ jobs, trans }: CommandServices): JobAction[] {
  return [
    {
      id: CommandIDs.cancel,
      label: trans.__('Cancel Job'),
      caption: trans.__('End the run; what it wrote so far is delivered'),
      appliesTo: job => !isFinal(job) && !job.cancel_requested,
      confirmation: 'confirmCancel',
      question: ({ name, state }) =>
        state === 'queued'
          ? null
          : {
              title: trans.__('Cancel %1?', name),
              body: trans.__(
                'The run ends. What it wrote so far is delivered as a notebook.'
              ),
              yes: trans.__('Cancel Job'),
              no: trans.__('Go On Running')
            },
      run: ({ name }) => jobs.cancel(name)
    },
    {
      id: CommandIDs.delete,
      label: trans.__('Delete Job…'),
      caption: trans.__('Forget the job; a delivered notebook stays'),
      appliesTo: () => true,
      confirmation: 'confirmDelete',
      question: job => ({
        title: trans.__('Delete %1?', job.name),
        body: isFinal(job)
          ? trans.__(
              'Its logs are gone then, and it cannot be rerun. A delivered notebook stays.'
            )
          : trans.__('It is ended, and nothing of it is delivered.'),
        yes: trans.__('Delete Job'),
        no: trans.__('Keep It')
      }),
      run: ({ name }) => jobs.delete(name)
    }
  ];
}

/** Commands that go back to the notebook that was submitted, as it is now. */
function sourceActions({ commands, trans }: CommandServices): JobAction[] {
  return [
    {
      id: CommandIDs.source,
      label: trans.__('Open Source'),
      caption: trans.__('Open the notebook that was submitted'),
      appliesTo: () => true,
      run: ({ notebook }) => openSource(commands, notebook, trans)
    },
    {
      id: CommandIDs.submitCurrent,
      label: trans.__('Submit Current Version'),
      caption: trans.__(
        'Send the notebook as it is now, with the same choices'
      ),
      appliesTo: isFinal,
      run: job => {
        requireExact(Object.entries(job.parameters), trans);
        return commands.execute(SUBMIT, {
          ...(choicesOfJob(job) as ReadonlyPartialJSONObject),
          current: job.notebook
        });
      }
    }
  ];
}

function rerunActions({
  jobs,
  journalApi,
  dialog,
  trans
}: CommandServices): JobAction[] {
  return [
    {
      id: CommandIDs.rerun,
      label: trans.__('Rerun'),
      caption: trans.__('Run it again as it was frozen: a new job'),
      appliesTo: isFinal,
      run: job => jobs.rerun(job.name),
      isSubmission: true
    },
    {
      id: CommandIDs.rerunWith,
      label: trans.__('Rerun with Changes…'),
      caption: trans.__('Run what was frozen again, with other choices'),
      appliesTo: job => dialog !== null && isFinal(job),
      run: async job =>
        dialog?.ask(await createRerunSource(job, jobs, journalApi, trans)) ??
        null
    }
  ];
}

/** What is asked before something is lost. */
export type Question = { title: string; body: string; yes: string; no: string };

/** Ask; resolves to whether the user said yes. */
export async function isConfirmed(question: Question): Promise<boolean> {
  const { title, body, yes, no } = question;
  const { button } = await showDialog({
    title,
    body,
    defaultButton: 0, // Enter takes the harmless button.
    buttons: [
      Dialog.cancelButton({ label: no }),
      Dialog.warnButton({ label: yes })
    ]
  });
  return button.accept;
}
