/**
 * Shows notifications of the computer for jobs that have ended. Ends that come together share one,
 * and so do all ends when there are too many: a sweep must not fill the screen.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';

import type { Job } from '../jobs/job';
import type { IPreferences } from '../settings/preferences';
import { countsText } from '../ui/countsText';
import { endTitle, publicText } from './endText';
import { readPermission } from './permission';
import type { Presence } from './presence';

/** How long ends are collected, in milliseconds. */
const GATHER_MS = 1000;

/** How many jobs have a notification of their own. */
const MAX_SINGLE = 3;

export type NotifierOptions = {
  preferences: IPreferences;
  presence: Pick<Presence, 'isSomebodyInFront' | 'tellUserCame' | 'userCame'>;
  trans: TranslationBundle;
  /** Distinguishes the notifications of different servers. */
  scope: string;
  /** Lead the user to a job, or to all of them if there are several. */
  show: (job: Job | null) => void;
};

export class DesktopNotifier {
  /** @param gatherMs how long ends are collected, in milliseconds */
  constructor(
    private readonly _options: NotifierOptions,
    private readonly _gatherMs = GATHER_MS
  ) {
    window.addEventListener('focus', this._onFocus);
    _options.presence.userCame.connect(this._closeAll, this);
  }

  /** Tell of a job's end, if the user wants that. */
  tell(job: Job): void {
    if (this._isOn && this._isMeant(job)) {
      this._pending.push(job);
      this._timer ??= setTimeout(() => void this._flush(), this._gatherMs);
    }
  }

  dispose(): void {
    clearTimeout(this._timer);
    window.removeEventListener('focus', this._onFocus);
    Signal.disconnectReceiver(this);
    this._closeAll();
  }

  private get _isOn(): boolean {
    const { desktopNotifications } = this._options.preferences.current;
    return desktopNotifications !== 'never' && readPermission() === 'granted';
  }

  private _isMeant({ state }: Job): boolean {
    const { notifyOf } = this._options.preferences.current;
    return (
      state === 'failed' ||
      notifyOf === 'all' ||
      (notifyOf === 'ended' && state === 'succeeded')
    );
  }

  private async _flush(): Promise<void> {
    this._timer = undefined;
    const jobs = this._pending.splice(0);
    const { preferences, presence } = this._options;
    const isSeen = await presence.isSomebodyInFront();
    if (isSeen) {
      this._unseen = [];
    }
    const isHidden =
      isSeen && preferences.current.desktopNotifications === 'away';
    if (!isHidden && this._isOn) {
      this._show(jobs);
    }
  }

  private _show(jobs: Job[]): void {
    const { scope, trans } = this._options;
    this._unseen.push(...jobs);
    if (this._unseen.length > MAX_SINGLE) {
      this._shown.splice(0).forEach(each => each.close());
      const count = this._unseen.length;
      const title = trans._n('%1 job has ended', '%1 jobs have ended', count);
      const body = countsText(this._unseen, trans);
      this._notify(title, body, scope, null);
      return;
    }
    for (const job of jobs) {
      const tag = `${scope} ${job.name}`;
      const body = publicText(job, trans);
      this._notify(endTitle(job, trans), body, tag, job);
    }
  }

  /** Show one. The browser replaces one of the same tag, which another page may have shown. */
  private _notify(
    title: string,
    body: string,
    tag: string,
    job: Job | null
  ): void {
    try {
      const notification = new window.Notification(title, { body, tag });
      notification.onclick = () => {
        window.focus();
        notification.close();
        this._options.show(job);
      };
      this._shown.push(notification);
    } catch (error) {
      // Browsers of phones have them in service workers only.
      console.warn('jupyter-to-job: no notification can be shown', error);
    }
  }

  /** Once the user is back, what the page itself shows is enough. */
  private readonly _onFocus = (): void => {
    this._closeAll();
    this._options.presence.tellUserCame();
  };

  private _closeAll(): void {
    this._unseen = [];
    this._shown.splice(0).forEach(each => each.close());
  }

  private _pending: Job[] = [];
  /** The jobs told of since the user was last here. */
  private _unseen: Job[] = [];
  private readonly _shown: globalThis.Notification[] = [];
  private _timer: ReturnType<typeof setTimeout> | undefined;
}
