/**
 * Notifications of groups: one when the jobs of a group were submitted, and one when all of them
 * have ended. Their single ends are told by the panel.
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
import { groupText } from './groupProgress';
import { pressGate } from './press';
import { showToast, type Toast } from './toast';

export class GroupToasts {
  /**
   * @param isShown whether the user wants to be told of such an end
   * @param showResults compares the jobs of a group
   */
  constructor(
    private readonly _jobs: Pick<IJobs, 'all' | 'loadGroup'>,
    private readonly _trans: TranslationBundle,
    private readonly _isShown: (end: Pick<Job, 'state'>) => boolean,
    private readonly _showResults: (group: string) => void
  ) {}

  /** Tell that jobs were submitted. */
  onSubmitted({ group, jobs }: SweptJobs): void {
    const text = this._trans._n(
      '%1 job was submitted as the group %2',
      '%1 jobs were submitted as the group %2',
      jobs.length,
      group
    );
    this._show({ type: 'info', text, actions: this._actions(group) });
  }

  /** Take the end of a job that is one of several of a group; returns whether it is. */
  takes(job: Job): boolean {
    const { group } = job;
    const members = group === null ? [] : jobsOf(this._jobs.all, group);
    if (group === null || members.length < 2) {
      return false;
    }
    if (members.every(isSettled)) {
      void this._tellEnd(group);
    }
    return true;
  }

  private async _tellEnd(group: string): Promise<void> {
    await this._jobs.loadGroup(group).catch(() => undefined); // older ones count, too
    const jobs = jobsOf(this._jobs.all, group);
    const { failed } = countStates(standingJobs(jobs));
    if (this._isShown({ state: failed > 0 ? 'failed' : 'succeeded' })) {
      const text = `${group}: ${groupText(jobs, this._trans)}`;
      const type = failed > 0 ? 'error' : 'success';
      this._show({ type, text, actions: this._actions(group) });
    }
  }

  private _actions(group: string): Notification.IAction[] {
    const callback = () => this._showResults(group);
    return [{ label: this._trans.__('Results'), callback }];
  }

  private _show(toast: Toast): void {
    pressGate.run(() => void showToast(toast, this._trans));
  }
}
