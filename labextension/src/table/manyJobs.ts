/** What can be done to several jobs at once: asked for once, told once. */
import type { Contents } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';

import { isConfirmed, type Question } from '../jobCommands';
import { isFinal, type Job, resultPath } from '../jobs/job';
import type { IPreferences } from '../settings/preferences';
import type { IJobs } from '../tokens';
import { describeErrors } from '../ui/errors';
import {
  cancelFailureTexts,
  deleteFailureTexts,
  type FailureTexts,
  rerunFailureTexts
} from '../ui/failureTexts';
import { openResultOrThrow } from '../ui/openResult';
import { showToast } from '../ui/toast';

/** How many requests are under way at once. */
const CONCURRENCY = 4;

/** Up to this many results are opened, or jobs run again, without a question. */
const MAX_UNASKED = 10;

export type JobsAction = FailureTexts & {
  id: 'open' | 'rerun' | 'cancel' | 'delete';
  label: string;
  /** What a button of no job says. */
  caption: string;
  appliesTo: (job: Job) => boolean;
  /** What to ask before; null if nothing is lost, or the user wants no question. */
  question: (jobs: readonly Job[]) => Question | null;
  run: (job: Job) => Promise<unknown>;
  /** What is being done. */
  progress: (done: number, total: number) => string;
  /** Names of the jobs to which it is being done: a second press must not do it again. */
  readonly underWay: Set<string>;
};

type Services = {
  commands: CommandRegistry;
  contents?: Contents.IManager;
  jobs: IJobs;
  preferences: IPreferences;
  trans: TranslationBundle;
};

export function createJobsActions(services: Services): JobsAction[] {
  return [
    openAction(services),
    rerunAction(services),
    cancelAction(services),
    deleteAction(services)
  ];
}

function openAction(services: Services): JobsAction {
  const { commands, contents, trans } = services;
  const failure = (failed: number, total: number) =>
    trans.__('%1 of %2 results were not opened', failed, total);
  return {
    id: 'open',
    label: trans.__('Open'),
    caption: trans.__('Open the results of the selected jobs'),
    appliesTo: job => resultPath(job) !== null,
    question: ({ length }) =>
      length <= MAX_UNASKED
        ? null
        : {
            title: trans.__('Open %1 notebooks?', length),
            body: trans.__('Each is opened in a tab of its own.'),
            yes: trans.__('Open'),
            no: trans.__('Cancel')
          },
    run: job =>
      openResultOrThrow(commands, resultPath(job) ?? '', trans, {
        name: job.name,
        contents
      }),
    progress: (done, total) => trans.__('Opened %1 of %2', done, total),
    failure,
    uncertainty: failure, // The page itself opens: without an answer it has not.
    underWay: new Set()
  };
}

function rerunAction({ jobs, trans }: Services): JobsAction {
  return {
    id: 'rerun',
    label: trans.__('Rerun'),
    caption: trans.__('Run the selected jobs again as they were frozen'),
    appliesTo: isFinal,
    question: ({ length }) =>
      length <= MAX_UNASKED
        ? null
        : {
            title: trans.__('Rerun %1 jobs?', length),
            body: trans.__('Each becomes a new job.'),
            yes: trans.__('Rerun'),
            no: trans.__('Cancel')
          },
    run: ({ name }) => jobs.rerun(name),
    progress: (done, total) => trans.__('Reran %1 of %2', done, total),
    ...rerunFailureTexts(trans),
    underWay: new Set()
  };
}

function cancelAction({ jobs, preferences, trans }: Services): JobsAction {
  return {
    id: 'cancel',
    label: trans.__('Cancel'),
    caption: trans.__('End the selected jobs that have not ended'),
    appliesTo: job => !isFinal(job) && !job.cancel_requested,
    question: selected => {
      const { length } = selected;
      return !preferences.current.confirmCancel ||
        selected.every(({ state }) => state === 'queued')
        ? null
        : {
            title:
              length === 1
                ? trans.__('Cancel %1?', selected[0]!.name)
                : trans.__('Cancel %1 jobs?', length),
            body: trans.__(
              'The runs end. What they wrote so far is delivered as notebooks.'
            ),
            yes: trans._n('Cancel %1 Job', 'Cancel %1 Jobs', length),
            no: trans.__('Go On Running')
          };
    },
    run: ({ name }) => jobs.cancel(name),
    progress: (done, total) => trans.__('Cancelled %1 of %2', done, total),
    ...cancelFailureTexts(trans),
    underWay: new Set()
  };
}

function deleteAction({ jobs, preferences, trans }: Services): JobsAction {
  return {
    id: 'delete',
    label: trans.__('Delete…'),
    caption: trans.__('Forget the selected jobs; delivered notebooks stay'),
    appliesTo: () => true,
    question: selected => {
      if (!preferences.current.confirmDelete) {
        return null;
      }
      const unfinished = selected.filter(job => !isFinal(job)).length;
      const isOne = selected.length === 1;
      const sentences = [
        isOne
          ? trans.__(
              'Its logs are gone then, and it cannot be rerun. A delivered notebook stays.'
            )
          : trans.__(
              'Their logs are gone then, and they cannot be rerun. Delivered notebooks stay.'
            ),
        unfinished > 0 &&
          trans._n(
            '%1 of them has not ended: it is ended, and nothing of it is delivered.',
            '%1 of them have not ended: they are ended, and nothing of them is delivered.',
            unfinished
          )
      ];
      return {
        title: isOne
          ? trans.__('Delete %1?', selected[0]!.name)
          : trans.__('Delete %1 jobs?', selected.length),
        body: sentences.filter(Boolean).join(' '),
        yes: trans._n('Delete %1 Job', 'Delete %1 Jobs', selected.length),
        no: isOne ? trans.__('Keep It') : trans.__('Keep Them')
      };
    },
    run: ({ name }) => jobs.delete(name),
    progress: (done, total) => trans.__('Deleted %1 of %2', done, total),
    ...deleteFailureTexts(trans),
    underWay: new Set()
  };
}

/**
 * Ask if something would be lost, and do it to those jobs to which it applies. What fails is told in
 * one notification; the others go on. Jobs to which it is being done already are left out.
 *
 * @param onProgress gets words for what is done; empty at the end
 * @returns the number of jobs with which it succeeded
 */
export async function runForJobs(
  action: JobsAction,
  selected: readonly Job[],
  onProgress: (text: string) => void,
  trans: TranslationBundle
): Promise<number> {
  const { underWay } = action;
  const jobs = selected.filter(
    job => action.appliesTo(job) && !underWay.has(job.name)
  );
  if (jobs.length === 0) {
    return 0;
  }
  jobs.forEach(({ name }) => underWay.add(name));
  try {
    const question = action.question(jobs);
    if (question !== null && !(await isConfirmed(question))) {
      return 0;
    }
    return await runAll(action, jobs, onProgress, trans);
  } finally {
    jobs.forEach(({ name }) => underWay.delete(name));
  }
}

async function runAll(
  action: JobsAction,
  jobs: readonly Job[],
  onProgress: (text: string) => void,
  trans: TranslationBundle
): Promise<number> {
  const errors: unknown[] = [];
  const pending = [...jobs];
  let done = 0;
  const work = async () => {
    for (let job = pending.shift(); job !== undefined; job = pending.shift()) {
      try {
        await action.run(job);
        done += 1;
      } catch (error) {
        errors.push(error);
      }
      if (jobs.length > 1) {
        onProgress(action.progress(done, jobs.length));
      }
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  onProgress('');
  if (errors.length > 0) {
    const text = describeErrors(action, errors, jobs.length, trans);
    showToast({ type: 'error', text }, trans);
  }
  return jobs.length - errors.length;
}
