/**
 * What a screen reader is told of jobs: changes of their states, politely, and in one go where many
 * come at once. Ends are left to the notifications, which are read out, too.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import { isFinal, type Job } from '../jobs/job';
import type { IJobs } from '../tokens';
import { standing } from '../ui/statusText';

/** How long changes are gathered, in milliseconds. */
const REST = 1000;

/** More changes than this are told by their number only. */
const MOST = 3;

/** Says what changed. */
export class Announcer {
  /** @param say gets each announcement */
  constructor(
    private readonly _jobs: IJobs,
    private readonly _say: (text: string) => void,
    private readonly _trans: TranslationBundle
  ) {
    _jobs.all.forEach(job => this._states.set(job.name, job.state));
    _jobs.changed.connect(this._onChanged, this);
  }

  dispose(): void {
    clearTimeout(this._timer);
    this._jobs.changed.disconnect(this._onChanged, this);
  }

  private _onChanged(_: IJobs, job: Job): void {
    const before = this._states.get(job.name);
    this._states.set(job.name, job.state);
    if (before === undefined || before === job.state || isFinal(job)) {
      return;
    }
    this._news.set(job.name, job);
    this._timer ??= setTimeout(() => this._tell(), REST);
  }

  private _tell(): void {
    this._timer = undefined;
    const news = [...this._news.values()];
    this._news.clear();
    this._say(
      news.length > MOST
        ? this._trans.__('%1 jobs changed', news.length)
        : news
            .map(job => `${job.name}: ${standing(job, this._trans)}`)
            .join('. ')
    );
  }

  private readonly _states = new Map<string, string>();
  private readonly _news = new Map<string, Job>();
  private _timer: ReturnType<typeof setTimeout> | undefined;
}
