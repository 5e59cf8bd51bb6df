/** Notifications of the computer, and what ended while no page was open. */
import { Signal } from '@lumino/signaling';

import type { Page } from '../src/api';
import type { JobsQuery } from '../src/jobs/client';
import type { Job } from '../src/jobs/job';
import { DesktopNotifier } from '../src/notify/desktopNotifier';
import { DesktopSwitch } from '../src/notify/desktopSwitch';
import { endToast, publicText } from '../src/notify/endText';
import { findMissed, KnownStore, knownOf } from '../src/notify/missedJobs';
import { Presence } from '../src/notify/presence';
import {
  DEFAULTS,
  type Preferences,
  RegistryPreferences
} from '../src/settings/preferences';
import { job, TRANS } from './fixtures';

/** The browser's notifications, as they were made. */
class Recorded {
  static permission: NotificationPermission = 'granted';
  static answer: NotificationPermission = 'granted';
  static asked = 0;
  static made: Recorded[] = [];

  static requestPermission(): Promise<NotificationPermission> {
    Recorded.asked += 1;
    Recorded.permission = Recorded.answer;
    return Promise.resolve(Recorded.answer);
  }

  constructor(
    readonly title: string,
    readonly options: NotificationOptions
  ) {
    Recorded.made.push(this);
  }

  onclick: (() => void) | null = null;
  isClosed = false;

  close(): void {
    this.isClosed = true;
  }
}

const settle = () => new Promise(resolve => setTimeout(resolve, 20));

function preferences(values: Partial<Preferences>): RegistryPreferences {
  const made = new RegistryPreferences();
  made.current = { ...DEFAULTS, ...values };
  return made;
}

beforeEach(() => {
  Object.assign(window, { Notification: Recorded, isSecureContext: true });
  Object.assign(Recorded, { permission: 'granted', asked: 0, made: [] });
  window.focus = () => undefined;
});

describe('DesktopNotifier', () => {
  const opened: (string | null)[] = [];
  let isInFront = false;
  let told = 0;
  const presence = {
    isSomebodyInFront: () => Promise.resolve(isInFront),
    tellUserCame: () => {
      told += 1;
    }
  };
  const userCame = new Signal<Presence, void>(presence as Presence);
  const made: DesktopNotifier[] = [];

  afterEach(() => made.splice(0).forEach(each => each.dispose()));

  function notifier(values: Partial<Preferences> = {}): DesktopNotifier {
    opened.length = 0;
    isInFront = false;
    told = 0;
    const desktop = new DesktopNotifier(
      {
        preferences: preferences({ desktopNotifications: 'away', ...values }),
        presence: { ...presence, userCame },
        trans: TRANS,
        scope: 'lab',
        show: shown => opened.push(shown?.name ?? null)
      },
      1
    );
    made.push(desktop);
    return desktop;
  }

  const ended = (name: string, changes: Partial<Job> = {}) =>
    job({ name, state: 'succeeded', ...changes });

  it('says what is public of a job, and leads to it', async () => {
    const desktop = notifier();
    desktop.tell(
      ended('a-1', {
        state: 'failed',
        reason: 'CellError',
        message: 'ValueError: the token is 1234'
      })
    );
    await settle();
    const [shown] = Recorded.made;
    expect(shown!.title).toBe('a-1 failed');
    expect(shown!.options).toEqual({
      body: 'study.ipynb\nA cell raised an error',
      tag: 'lab a-1'
    });
    shown!.onclick!();
    expect(opened).toEqual(['a-1']);
    expect(shown!.isClosed).toBe(true);
  });

  it('says nothing unless it is wanted, allowed and of use', async () => {
    notifier({ desktopNotifications: 'never' }).tell(ended('a'));
    notifier().tell(ended('b', { state: 'cancelled' }));
    notifier({ notifyOf: 'failed' }).tell(ended('b'));
    Recorded.permission = 'default';
    notifier().tell(ended('c'));
    Recorded.permission = 'granted';
    const desktop = notifier();
    desktop.tell(ended('d'));
    isInFront = true;
    await settle();
    expect(Recorded.made).toEqual([]);
    expect(Recorded.asked).toBe(0);
  });

  it('tells of cancelled jobs if that is wanted', async () => {
    notifier({ notifyOf: 'all' }).tell(ended('a', { state: 'cancelled' }));
    await settle();
    expect(Recorded.made.map(({ title }) => title)).toEqual([
      'a was cancelled'
    ]);
  });

  it('tells always if that is wanted', async () => {
    const desktop = notifier({ desktopNotifications: 'always' });
    isInFront = true;
    desktop.tell(ended('a'));
    await settle();
    expect(Recorded.made).toHaveLength(1);
  });

  it('makes one of many, and takes them back when the user is here', async () => {
    const desktop = notifier();
    ['a', 'b'].forEach(name => desktop.tell(ended(name)));
    await settle();
    ['c', 'd'].forEach(name => desktop.tell(ended(name, { state: 'failed' })));
    await settle();
    const titles = Recorded.made.map(({ title }) => title);
    expect(titles).toEqual(['a finished', 'b finished', '4 jobs have ended']);
    const last = Recorded.made[2]!;
    expect(last.options.body).toBe('2 succeeded, 2 failed');
    expect(Recorded.made.map(({ isClosed }) => isClosed)).toEqual([
      true,
      true,
      false
    ]);
    last.onclick!();
    expect(opened).toEqual([null]);

    window.dispatchEvent(new Event('focus'));
    expect(last.isClosed).toBe(true);
    desktop.tell(ended('e'));
    await settle();
    expect(Recorded.made.at(-1)!.title).toBe('e finished');
  });

  it('takes them back when the user is at another page, and tells that of its own', async () => {
    const desktop = notifier();
    ['a', 'b', 'c'].forEach(name => desktop.tell(ended(name)));
    await settle();
    userCame.emit();
    expect(Recorded.made.every(({ isClosed }) => isClosed)).toBe(true);
    desktop.tell(ended('d'));
    await settle();
    expect(Recorded.made.at(-1)!.title).toBe('d finished');
    expect(told).toBe(0);
    window.dispatchEvent(new Event('focus'));
    expect(told).toBe(1);
  });

  it.each(['away', 'always'] as const)(
    'counts no end from before somebody was in front, if told %s',
    async desktopNotifications => {
      const desktop = notifier({ desktopNotifications });
      const tell = async (name: string) => {
        desktop.tell(ended(name));
        await settle();
      };
      await tell('a');
      await tell('b');
      await tell('c');
      isInFront = true;
      await tell('d');
      isInFront = false;
      await tell('e');
      expect(Recorded.made.at(-1)!.title).toBe('e finished');
    }
  );

  it('survives a browser that has them in service workers only', async () => {
    const warn = jest.spyOn(console, 'warn').mockImplementation();
    Object.assign(window, {
      Notification: Object.assign(
        () => {
          throw new TypeError('Illegal constructor');
        },
        { permission: 'granted' }
      )
    });
    notifier().tell(ended('a'));
    await settle();
    expect(warn).toHaveBeenCalled();
    warn.mockRestore();
  });
});

describe('Presence', () => {
  /** A channel between pages that share this window. */
  class Channel extends EventTarget {
    static open: Channel[] = [];

    constructor(readonly name: string) {
      super();
      Channel.open.push(this);
    }

    postMessage(data: unknown): void {
      Channel.open
        .filter(each => each !== this && each.name === this.name)
        .forEach(each =>
          each.dispatchEvent(new MessageEvent('message', { data }))
        );
    }

    close(): void {
      Channel.open = Channel.open.filter(each => each !== this);
    }
  }

  it('tells the other pages of a server that the user came', async () => {
    Object.assign(globalThis, { BroadcastChannel: Channel });
    const pages = ['a', 'a', 'b'].map(name => new Presence(name, 1));
    const told: number[] = [];
    pages.forEach((page, index) =>
      page.userCame.connect(() => told.push(index))
    );
    pages[0]!.tellUserCame();
    expect(told).toEqual([1]);
    jest.spyOn(document, 'hasFocus').mockReturnValue(false);
    expect(await pages[0]!.isSomebodyInFront()).toBe(false);
    pages.forEach(page => page.dispose());
    pages[0]!.tellUserCame();
    expect(told).toEqual([1]);
    jest.restoreAllMocks();
  });
});

describe('DesktopSwitch', () => {
  it('asks the browser only when it is switched on', async () => {
    Recorded.permission = 'default';
    const set = preferences({});
    const desktop = new DesktopSwitch(set);
    expect(desktop.isOn).toBe(false);
    expect(Recorded.asked).toBe(0);
    expect(await desktop.toggle()).toBe('granted');
    expect(Recorded.asked).toBe(1);
    expect(desktop.isOn).toBe(true);
    expect(set.current.desktopNotifications).toBe('away');
    await desktop.toggle();
    expect(desktop.isOn).toBe(false);
    expect(set.current.desktopNotifications).toBe('never');
    await desktop.toggle();
    expect(Recorded.asked).toBe(1);
  });

  it('stays off if the browser says no, or needs HTTPS', async () => {
    Object.assign(Recorded, { permission: 'default', answer: 'denied' });
    const set = preferences({});
    const desktop = new DesktopSwitch(set);
    expect(await desktop.toggle()).toBe('denied');
    expect(set.current.desktopNotifications).toBe('never');
    Object.assign(window, { isSecureContext: false });
    expect(await desktop.toggle()).toBe('insecure');
    expect(Recorded.asked).toBe(1);
    Recorded.answer = 'granted';
  });
});

describe('texts of an end', () => {
  it('keep the message out of what others may see', () => {
    const failed = job({
      state: 'failed',
      reason: 'OutOfMemory',
      message: 'secret'
    });
    expect(publicText(failed, TRANS)).not.toContain('secret');
    expect(endToast(failed, TRANS).text).toContain('secret');
  });

  it('say that a result was not delivered', () => {
    const held = job({
      state: 'succeeded',
      delivery: { state: 'held', path: null, message: 'The folder is gone.' }
    });
    expect(endToast(held, TRANS)).toEqual({
      type: 'warning',
      text: 'study-aaaaaaaa finished, but its notebook could not be delivered: The folder is gone.'
    });
    expect(publicText(held, TRANS)).toContain('could not be delivered');
  });
});

describe('what ended while no page was open', () => {
  const delivery = {
    state: 'delivered',
    path: 'r.ipynb',
    message: null
  } as const;
  const settled = (name: string, submitted: string) =>
    job({ name, submitted, state: 'succeeded', delivery });

  /** A server that has these jobs, newest first. */
  function server(...jobs: Job[]) {
    const asked: JobsQuery[] = [];
    const list = (query: JobsQuery): Promise<Page> => {
      asked.push(query);
      const names = query.name?.split(',');
      const found = jobs.filter(({ name }) => names?.includes(name) ?? true);
      return Promise.resolve({ jobs: found, next: null });
    };
    return { asked, list };
  }

  const names = (jobs: Job[]) => jobs.map(({ name }) => name);

  it('is what was unfinished then, or unknown', async () => {
    const known = knownOf([
      job({ name: 'ran', submitted: '2' }),
      settled('seen', '1')
    ]);
    expect(known).toEqual({ newest: '2 ran', unsettled: ['ran'] });
    const loaded = [
      job({ name: 'runs', submitted: '4' }),
      settled('unknown', '3'),
      settled('ran', '2'),
      settled('seen', '1')
    ];
    const client = server();
    expect(names(await findMissed(known, loaded, client))).toEqual([
      'unknown',
      'ran'
    ]);
    expect(client.asked).toEqual([]);
  });

  it('is asked for where the list does not reach so far', async () => {
    const known = { newest: '2 b', unsettled: ['old', 'gone'] };
    const old = settled('old', '0');
    const client = server(settled('d', '4'), settled('c', '3'), old);
    const missed = await findMissed(known, [settled('d', '4')], client);
    expect(names(missed)).toEqual(['d', 'c', 'old']);
    expect(client.asked).toEqual([
      { limit: 500 },
      { limit: 500, name: 'gone' }
    ]);
  });

  it('is kept by the browser, for each server', () => {
    const store = new KnownStore('/user/ada/');
    expect(store.load()).toBeNull();
    store.save({ newest: '1 a', unsettled: ['a'] });
    expect(store.load()).toEqual({ newest: '1 a', unsettled: ['a'] });
    expect(new KnownStore('/user/bob/').load()).toBeNull();
    localStorage.setItem('jupyter-to-job:known:/user/bob/', '{"a": 1}');
    expect(new KnownStore('/user/bob/').load()).toBeNull();
    localStorage.setItem('jupyter-to-job:known:/user/bob/', '{');
    expect(new KnownStore('/user/bob/').load()).toBeNull();
  });
});
