/** What a job waits for, and estimates of when it starts and how long it runs. */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { Estimate, Need, Wait } from '../api';
import { formatBytes, formatDuration, formatMoment } from './format';

/** Up to how many seconds an estimate is rounded to which step: it is not exact. */
const STEPS: readonly [limit: number, step: number][] = [
  [60, 5],
  [600, 60],
  [3600, 300],
  [36_000, 600],
  [172_800, 3600],
  [Infinity, 21_600]
];

/** How long after its latest moment an estimate is still shown: it is not exact. */
const OVERDUE_MS = 60_000;

/** Why a job waits: `Needs 2 CPUs, 1 is free. 28 jobs are before it.` Null if nothing is known. */
export function waitReason(
  { needs, before }: Wait,
  trans: TranslationBundle
): string | null {
  const sentences = needs.map(need =>
    trans.__('Needs %1; free now: %2.', ...needText(need, trans))
  );
  if (before !== null && before > 0) {
    sentences.push(
      trans._n('%1 job is before it.', '%1 jobs are before it.', before)
    );
  }
  return sentences.join(' ') || null;
}

/** When a waiting job starts, by the clock; null if nobody knows, or if that time is over. */
export function startTimeText(
  { start, time }: Wait,
  now: number,
  trans: TranslationBundle
): string | null {
  if (
    start === null ||
    start.runs === 0 ||
    Date.parse(time) + start.high * 1000 < now - OVERDUE_MS
  ) {
    return null;
  }
  const clock = (seconds: number) =>
    formatMoment(
      new Date(Date.parse(time) + roundEstimate(seconds) * 1000).toISOString(),
      now
    );
  const range = rangeText(start, clock, trans);
  return trans._n(
    'Starts at about %2, estimated from %1 earlier run.',
    'Starts at about %2, estimated from %1 earlier runs.',
    start.runs,
    range
  );
}

/** What the dialog says before a job is sent; empty if it starts at once and never ran. */
export function forecastText(wait: Wait, trans: TranslationBundle): string {
  const duration = (seconds: number) =>
    formatDuration(roundEstimate(seconds), trans);
  const { start, run } = wait;
  const isWaiting = wait.needs.length > 0 || (wait.before ?? 0) > 0;
  return [
    waitReason(wait, trans),
    isWaiting &&
      start !== null &&
      start.runs > 0 &&
      trans._n(
        'Starts in about %2, estimated from %1 earlier run.',
        'Starts in about %2, estimated from %1 earlier runs.',
        start.runs,
        rangeText(start, duration, trans)
      ),
    run !== null &&
      trans._n(
        'Runs about %2, estimated from %1 earlier run.',
        'Runs about %2, estimated from %1 earlier runs.',
        run.runs,
        rangeText(run, duration, trans)
      )
  ]
    .filter(Boolean)
    .join(' ');
}

/**
 * What the dialog says before several jobs are sent: the one that is first in the queue stands for
 * them, for the others wait for their like.
 */
export function sweepForecastText(
  { needs, before, start, run }: Wait,
  trans: TranslationBundle
): string {
  const duration = (seconds: number) =>
    formatDuration(roundEstimate(seconds), trans);
  const isWaiting = needs.length > 0 || (before ?? 0) > 0;
  return [
    ...needs.map(need =>
      trans.__('Each needs %1; free now: %2.', ...needText(need, trans))
    ),
    before !== null &&
      before > 0 &&
      trans._n('%1 job is before them.', '%1 jobs are before them.', before),
    isWaiting &&
      start !== null &&
      start.runs > 0 &&
      trans._n(
        'The first starts in about %2, estimated from %1 earlier run.',
        'The first starts in about %2, estimated from %1 earlier runs.',
        start.runs,
        rangeText(start, duration, trans)
      ),
    run !== null &&
      trans._n(
        'Each runs about %2, estimated from %1 earlier run.',
        'Each runs about %2, estimated from %1 earlier runs.',
        run.runs,
        rangeText(run, duration, trans)
      )
  ]
    .filter(Boolean)
    .join(' ');
}

function rangeText(
  { low, likely, high }: Estimate,
  format: (seconds: number) => string,
  trans: TranslationBundle
): string {
  const [from, most, to] = [format(low), format(likely), format(high)];
  return from === to ? most : trans.__('%1 (%2 to %3)', most, from, to);
}

/** Seconds as exactly as an estimate may say them. */
export function roundEstimate(seconds: number): number {
  const [, step] = STEPS.find(([limit]) => seconds < limit)!;
  return Math.max(Math.round(seconds / step) * step, 1);
}

function amountText(
  resource: string,
  amount: string,
  trans: TranslationBundle
): string {
  switch (resource) {
    case 'cpu':
      return trans._n('%2 CPU', '%2 CPUs', Number(amount), amount);
    case 'memory':
      return trans.__('%1 of memory', formatBytes(Number(amount)));
    default:
      return `${amount} ${resource}`;
  }
}

/** How much a job needs of something, and how much of it is free. */
function needText(need: Need, trans: TranslationBundle): [string, string] {
  return [amountText(need.resource, need.amount, trans), freeText(need)];
}

function freeText({ resource, free }: Need): string {
  return resource === 'memory' ? formatBytes(Number(free)) : free;
}
