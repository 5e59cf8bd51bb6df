/**
 * Announces changes of jobs' states to screen readers, several at once in one message. Ends are
 * left to notifications, which are read out, too.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import { isFinal, type Job } from '../jobs/job';
import type { IJobs } from '../tokens';
import { statusText } from '../ui/statusText';

/** How long changes are collected, in milliseconds. */
const GATHER_MS = 1000;

/** More changes than this are announced by their number only. */
const MAX_NAMED = 3;

/** Announces changes of jobs. */
export class Announcer {
  /** @param announce gets each message */
  constructor(
    private readonly _jobs: IJobs,
    private readonly _announce: (text: string) => void,
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
    const previous = this._states.get(job.name);
    this._states.set(job.name, job.state);
    if (previous === undefined || previous === job.state || isFinal(job)) {
      return;
    }
    this._pending.set(job.name, job);
    this._timer ??= setTimeout(() => this._announcePending(), GATHER_MS);
  }

  private _announcePending(): void {
    this._timer = undefined;
    const jobs = [...this._pending.values()];
    this._pending.clear();
    this._announce(
      jobs.length > MAX_NAMED
        ? this._trans.__('%1 jobs changed', jobs.length)
        : jobs
            .map(job => `${job.name}: ${statusText(job, this._trans)}`)
            .join('. ')
    );
  }

  private readonly _states = new Map<string, string>();
  private readonly _pending = new Map<string, Job>();
  private _timer: ReturnType<typeof setTimeout> | undefined;
}
