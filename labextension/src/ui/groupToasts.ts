/**
 * Notifications of groups: one when the jobs of a group were submitted, one when some of them run
 * again, and one when all of them have ended. Their single ends are told by the panel.
 */
import type { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

import { isSettled, type Job } from '../jobs/job';
import {
  countStates,
  jobsOf,
  standingJobs,
  type SweptJobs
} from '../jobs/sweep';
import type { IJobs } from '../tokens';
import { groupText, sweptText } from './groupProgress';
import { pressGate } from './press';
import { showToast, type Toast } from './toast';

/** How long reruns of a group are gathered, in milliseconds. */
const GATHER_MS = 1000;

type Options = {
  /** Whether the user wants to be told of such an end. */
  isShown: (end: Pick<Job, 'state'>) => boolean;
  /** Tells that a single job was submitted. */
  tellSubmitted: (job: Job) => void;
  /** Tells the end of a job, unless `takes` takes it. */
  tellEnd: (job: Job) => void;
  /** Compares the jobs of a group. */
  showResults: (group: string) => void;
  gatherMs?: number;
};

export class GroupToasts {
  constructor(
    private readonly _jobs: Pick<IJobs, 'all' | 'loadGroup' | 'pendingSweeps'>,
    private readonly _trans: TranslationBundle,
    private readonly _options: Options
  ) {}

  /** Tell that jobs were submitted. */
  onSubmitted(swept: SweptJobs): void {
    const { group } = swept;
    this._sent.add(group);
    const text = sweptText(swept, this._trans);
    this._show({ type: 'info', text, actions: this._actions(group) });
  }

  /** Take a job that was submitted as a rerun in a group; returns whether it is one. */
  takesRerun(job: Job): boolean {
    const { group, rerun_of } = job;
    if (group === null || rerun_of === null) {
      return false;
    }
    const reruns = this._reruns.get(group) ?? [];
    if (reruns.length === 0) {
      this._reruns.set(group, reruns);
      const gatherMs = this._options.gatherMs ?? GATHER_MS;
      setTimeout(() => this._tellReruns(group), gatherMs);
    }
    reruns.push(job);
    return true;
  }

  /**
   * Take the end of a job that is one of several of a group; returns whether it is told with the
   * others. A failure is told at once, unless it is of a sweep that this page has sent: a group may
   * go on for days. While a sweep is sent nobody knows whether its group has more jobs: the end is
   * told after that, also of another group that may be the sweep's.
   */
  takes(job: Job): boolean {
    const { group } = job;
    if (group === null) {
      return false;
    }
    const end = this._jobs.pendingSweeps.endFor(group);
    if (end !== null) {
      void end.then(() => this._options.tellEnd(job));
      return true;
    }
    const members = jobsOf(this._jobs.all, group);
    if (members.length < 2) {
      return false;
    }
    if (members.every(isSettled)) {
      void this._tellEnd(group);
    }
    return job.state !== 'failed' || this._sent.has(group);
  }

  private _tellReruns(group: string): void {
    const reruns = this._reruns.get(group) ?? [];
    this._reruns.delete(group);
    if (reruns.length === 1) {
      this._options.tellSubmitted(reruns[0]!);
      return;
    }
    const text = this._trans._n(
      '%1 job of %2 runs again',
      '%1 jobs of %2 run again',
      reruns.length,
      group
    );
    this._show({ type: 'info', text, actions: this._actions(group) });
  }

  private async _tellEnd(group: string): Promise<void> {
    if (this._ending.has(group)) {
      return;
    }
    this._ending.add(group); // several ends may have waited for the same sweep
    await this._jobs.loadGroup(group).catch(() => undefined); // older ones count, too
    this._ending.delete(group);
    const jobs = jobsOf(this._jobs.all, group);
    const { failed } = countStates(standingJobs(jobs));
    if (this._options.isShown({ state: failed > 0 ? 'failed' : 'succeeded' })) {
      const text = `${group}: ${groupText(jobs, this._trans)}`;
      const type = failed > 0 ? 'error' : 'success';
      this._show({ type, text, actions: this._actions(group) });
    }
  }

  private _actions(group: string): Notification.IAction[] {
    const callback = () => this._options.showResults(group);
    return [{ label: this._trans.__('Results'), callback }];
  }

  private _show(toast: Toast): void {
    pressGate.run(() => void showToast(toast, this._trans));
  }

  /** Groups that this page has sent. */
  private readonly _sent = new Set<string>();
  /** Groups whose end is about to be told. */
  private readonly _ending = new Set<string>();
  /** The reruns of each group that were not told yet. */
  private readonly _reruns = new Map<string, Job[]>();
}
