/** The commands that act on all jobs of a group. Each takes the group's name as its argument. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type {
  ReadonlyJSONObject,
  ReadonlyPartialJSONObject
} from '@lumino/coreutils';

import { isConfirmed, type Question } from './jobCommands';
import { isUncertain } from './jobs/client';
import { isFinal, type Job } from './jobs/job';
import { jobsOf, standingJobs } from './jobs/sweep';
import type { IPreferences } from './settings/preferences';
import type { IJobs } from './tokens';
import { describeErrors, showError, showErrorText } from './ui/errors';
import {
  cancelFailureTexts,
  deleteFailureTexts,
  type FailureTexts,
  rerunFailureTexts
} from './ui/failureTexts';

export const GroupCommandIDs = {
  results: 'jupyter-to-job:show-results',
  cancel: 'jupyter-to-job:cancel-group',
  rerunFailed: 'jupyter-to-job:rerun-failed',
  delete: 'jupyter-to-job:delete-group'
} as const;

/** Requests that are sent at a time. */
const AT_ONCE = 4;

type Services = {
  commands: CommandRegistry;
  jobs: IJobs;
  preferences: IPreferences;
  trans: TranslationBundle;
};

type GroupAction = FailureTexts & {
  id: string;
  label: string;
  caption: string;
  /** The jobs of a group that the command acts on, in the order in which it does. */
  select: (jobs: readonly Job[]) => Job[];
  question?: (selected: Job[], group: string) => Question | null;
  /** The setting by which the user is asked; always without one. */
  confirmation?: 'confirmCancel' | 'confirmDelete';
  run: (job: Job) => Promise<unknown>;
  /** Whether it makes jobs; an error that leaves open whether it did says so. */
  isSubmission?: true;
};

/** Add the commands of groups, except the one that shows results, which has a view. */
export function addGroupCommands(services: Services): void {
  groupActions(services).forEach(action => addCommand(services, action));
}

/** The arguments of a group's command as a JSON schema. */
export function describeGroupArguments(
  trans: TranslationBundle
): ReadonlyJSONObject {
  const description = trans.__("The group's name");
  const ask = trans.__(
    'Whether to ask before something is lost: true if left out'
  );
  return {
    type: 'object',
    properties: {
      group: { type: 'string', description },
      ask: { type: 'boolean', description: ask }
    },
    required: ['group']
  };
}

export function groupOf({ group }: ReadonlyPartialJSONObject): string {
  return typeof group === 'string' ? group : '';
}

/** The jobs that a rerun of what failed runs again. */
export function failedJobs(jobs: readonly Job[]): Job[] {
  return standingJobs(jobs).filter(({ state }) => state === 'failed');
}

function groupActions(services: Services): GroupAction[] {
  return [
    cancelAction(services),
    rerunAction(services),
    deleteAction(services)
  ];
}

function cancelAction({ jobs, trans }: Services): GroupAction {
  return {
    id: GroupCommandIDs.cancel,
    label: trans.__('Cancel Jobs of the Group'),
    caption: trans.__('End all that has not ended'),
    select: inOrderOfCancelling,
    confirmation: 'confirmCancel',
    question: (selected, group) =>
      selected.every(({ state }) => state === 'queued')
        ? null
        : cancelQuestion(selected.length, group, trans),
    run: ({ name }) => jobs.cancel(name),
    ...cancelFailureTexts(trans)
  };
}

function rerunAction({ jobs, trans }: Services): GroupAction {
  return {
    id: GroupCommandIDs.rerunFailed,
    label: trans.__('Rerun Failed Jobs'),
    caption: trans.__('Run the failed jobs again as they were frozen'),
    select: failedJobs,
    run: ({ name }) => jobs.rerun(name),
    ...rerunFailureTexts(trans),
    isSubmission: true
  };
}

function deleteAction({ jobs, trans }: Services): GroupAction {
  return {
    id: GroupCommandIDs.delete,
    label: trans.__('Delete Jobs of the Group…'),
    caption: trans.__('Forget the jobs; delivered notebooks stay'),
    select: members => [...members],
    confirmation: 'confirmDelete',
    question: (selected, group) =>
      deleteQuestion(selected.length, group, trans),
    run: ({ name }) => jobs.delete(name),
    ...deleteFailureTexts(trans)
  };
}

function cancelQuestion(
  count: number,
  group: string,
  trans: TranslationBundle
): Question {
  return {
    title: trans._n(
      'Cancel %1 job of %2?',
      'Cancel %1 jobs of %2?',
      count,
      group
    ),
    body: trans.__(
      'Their runs end. What they wrote so far is delivered as notebooks.'
    ),
    yes: trans.__('Cancel Jobs'),
    no: trans.__('Go On Running')
  };
}

function deleteQuestion(
  count: number,
  group: string,
  trans: TranslationBundle
): Question {
  return {
    title: trans._n(
      'Delete %1 job of %2?',
      'Delete %1 jobs of %2?',
      count,
      group
    ),
    body: trans.__(
      'What runs is ended. Logs and results side by side are gone then. Delivered notebooks stay.'
    ),
    yes: trans.__('Delete Jobs'),
    no: trans.__('Keep Them')
  };
}

/** What has not ended, and what waits first: none of it begins in between. */
function inOrderOfCancelling(jobs: readonly Job[]): Job[] {
  const open = jobs.filter(job => !isFinal(job) && !job.cancel_requested);
  const isWaiting = ({ state }: Job) => state === 'queued';
  return [...open.filter(isWaiting), ...open.filter(job => !isWaiting(job))];
}

function addCommand(services: Services, action: GroupAction): void {
  const { commands, jobs, preferences, trans } = services;
  const { id, label, caption, select, question, run } = action;
  const asksFirst = ({ ask }: ReadonlyPartialJSONObject) =>
    typeof ask === 'boolean'
      ? ask
      : action.confirmation === undefined ||
        preferences.current[action.confirmation];
  const isSomething = (args: ReadonlyPartialJSONObject) =>
    select(jobsOf(jobs.all, groupOf(args))).length > 0;
  /** Groups on which it acts now: a second press must not run jobs twice. */
  const underWay = new Set<string>();
  commands.addCommand(id, {
    label,
    caption,
    describedBy: { args: describeGroupArguments(trans) },
    isVisible: isSomething,
    isEnabled: args => groupOf(args) !== '',
    execute: async args => {
      const group = groupOf(args);
      if (underWay.has(group)) {
        return 0;
      }
      underWay.add(group);
      try {
        await jobs.loadGroup(group);
        const selected = select(jobsOf(jobs.all, group));
        const asked = asksFirst(args) ? question?.(selected, group) : null;
        if (selected.length === 0 || (asked && !(await isConfirmed(asked)))) {
          return 0;
        }
        const errors = await runAll(selected, run);
        if (errors.length > 0) {
          tellErrors(action, errors, selected.length, trans);
          return 0;
        }
        return selected.length;
      } catch (error) {
        showError(error, trans, false);
        return 0;
      } finally {
        underWay.delete(group);
      }
    }
  });
}

/**
 * Act on all jobs, some at a time; returns the errors. One that fails does not keep the others from
 * it.
 */
async function runAll(
  jobs: readonly Job[],
  run: (job: Job) => Promise<unknown>
): Promise<unknown[]> {
  const queue = [...jobs];
  const errors: unknown[] = [];
  const work = async () => {
    for (let job = queue.shift(); job !== undefined; job = queue.shift()) {
      await run(job).catch((error: unknown) => errors.push(error));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return errors;
}

/** Tell why jobs failed, and how many of them if more than one was meant. */
function tellErrors(
  action: GroupAction,
  errors: readonly unknown[],
  total: number,
  trans: TranslationBundle
): void {
  const uncertain = errors.find(isUncertain);
  const isUncertainSubmission =
    uncertain !== undefined && (action.isSubmission ?? false);
  if (total === 1) {
    showError(errors[0], trans, isUncertainSubmission);
    return;
  }
  const text = describeErrors(action, errors, total, trans);
  showErrorText(
    isUncertainSubmission
      ? trans.__('%1 Sending again is safe: it stays one job.', text)
      : text,
    uncertain ?? errors[0],
    trans
  );
}
