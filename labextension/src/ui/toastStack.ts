/**
 * Notifications of jobs: two at most at a time. The newest job has its own, and with a third one
 * the earlier ones become a single one that counts them, so that many jobs do not cover the page.
 */
import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { Job } from '../jobs/job';
import { countsText, toastTypeOf } from './countsText';
import { pressGate } from './press';
import { AUTO_CLOSE_MS, showToast, type Toast } from './toast';

/** How many jobs have a notification of their own. */
const MAX_TOASTS = 2;

type Shown = { id: string; job: Job; time: number };

export class ToastStack {
  constructor(
    private readonly _trans: TranslationBundle,
    private readonly _showJobs: () => void
  ) {}

  /** Show a notification of a job, in the place of its earlier one. */
  show(job: Job, toast: Toast): void {
    // A notification that appears moves the others: not while one is being pressed.
    pressGate.run(() => this._show(job, toast));
  }

  private _show(job: Job, toast: Toast): void {
    const time = Date.now();
    const isRecent = (shown: Shown) => time - shown.time < AUTO_CLOSE_MS;
    const others = this._shown.filter(
      shown => shown.job.name !== job.name && isRecent(shown)
    );
    const previous = this._shown.find(shown => shown.job.name === job.name);
    if (previous !== undefined) {
      Notification.dismiss(previous.id);
    }
    const ids = new Set(others.map(({ id }) => id));
    const isGathered = previous !== undefined && ids.has(previous.id);
    const earlier =
      isGathered || ids.size >= MAX_TOASTS ? this._gather(others) : others;
    const id = showToast(toast, this._trans);
    this._shown = [...earlier, { id, job, time }];
  }

  /** Make a single notification of several. */
  private _gather(shown: Shown[]): Shown[] {
    shown.forEach(({ id }) => Notification.dismiss(id));
    const jobs = shown.map(({ job }) => job);
    const id = showToast(this._summarize(jobs), this._trans);
    const time = Date.now();
    return jobs.map(job => ({ id, job, time }));
  }

  private _summarize(jobs: Job[]): Toast {
    const trans = this._trans;
    return {
      type: toastTypeOf(jobs),
      text: trans._n(
        '%1 job: %2',
        '%1 jobs: %2',
        jobs.length,
        countsText(jobs, trans)
      ),
      actions: [{ label: trans.__('Show Jobs'), callback: this._showJobs }]
    };
  }

  private _shown: Shown[] = [];
}
