/** Formats and parses times and amounts. */
import type { TranslationBundle } from '@jupyterlab/translation';

/** Format seconds as `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min` or `4 d 3 h`. */
export function formatDuration(
  seconds: number,
  trans: TranslationBundle
): string {
  if (seconds < 9.95) {
    return trans.__('%1 s', Number(Math.max(seconds, 0).toFixed(1)));
  }
  const total = Math.round(seconds);
  const days = Math.floor(total / 86_400);
  const hours = Math.floor(total / 3_600) % 24;
  const minutes = Math.floor(total / 60) % 60;
  const parts = [
    [days, trans.__('%1 d', days)],
    [hours, trans.__('%1 h', hours)],
    [minutes, trans.__('%1 min', minutes)],
    [total % 60, trans.__('%1 s', total % 60)]
  ] as const;
  const firstPart = parts.findIndex(([count]) => count > 0);
  return parts
    .slice(firstPart, firstPart + 2)
    .filter(([count]) => count > 0)
    .map(([, text]) => text)
    .join(' ');
}

/**
 * Format a time as `14:05`, or `14:05:09` with its seconds, and with its date if it is not on the
 * day of `now`.
 */
export function formatMoment(
  time: string,
  now: number,
  hasSeconds = false
): string {
  const digits = (part: number) => String(part).padStart(2, '0');
  const dayOf = (moment: Date) =>
    `${moment.getFullYear()}-${digits(moment.getMonth() + 1)}-${digits(moment.getDate())}`;
  const moment = new Date(time);
  const clock = [
    moment.getHours(),
    moment.getMinutes(),
    ...(hasSeconds ? [moment.getSeconds()] : [])
  ]
    .map(digits)
    .join(':');
  const day = dayOf(moment);
  return day === dayOf(new Date(now)) ? clock : `${day} ${clock}`;
}

let exactFormat: Intl.DateTimeFormat | undefined;

/** Format a time to the second, as the browser's language has it. */
export function formatExactly(time: string): string {
  // It is kept, because making one takes longer than all else in a row of a table.
  exactFormat ??= new Intl.DateTimeFormat(undefined, {
    dateStyle: 'medium',
    timeStyle: 'medium'
  });
  return exactFormat.format(new Date(time));
}

const DURATION_PATTERN =
  /^(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?$/;

/** Parse `90s`, `45m`, `1h30m`, `1d` or plain seconds; null for anything else. */
export function parseDuration(text: string): number | null {
  const plain = /^\d{1,9}$/.test(text) ? Number(text) : null;
  const parts = DURATION_PATTERN.exec(text)?.slice(1) ?? [];
  const unitSeconds = [86_400, 3_600, 60, 1];
  const sum = parts.reduce(
    (seconds, part, index) => seconds + Number(part ?? 0) * unitSeconds[index]!,
    0
  );
  return plain || sum || null;
}

/** Format a duration as `parseDuration` reads it: 5400 becomes `1h30m`; other texts stay. */
export function durationText(duration: number | string | undefined): string {
  if (typeof duration !== 'number') {
    return duration ?? '';
  }
  const parts = [
    [Math.floor(duration / 86_400), 'd'],
    [Math.floor(duration / 3_600) % 24, 'h'],
    [Math.floor(duration / 60) % 60, 'm'],
    [duration % 60, 's']
  ] as const;
  return parts
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count}${unit}`)
    .join('');
}

/** Format bytes as `512 B` or `3.4 MiB`. */
export function formatBytes(bytes: number): string {
  let amount = bytes;
  for (const unit of ['B', 'KiB', 'MiB', 'GiB']) {
    if (amount < 1024) {
      return `${Number(amount.toFixed(unit === 'B' ? 0 : 1))} ${unit}`;
    }
    amount /= 1024;
  }
  return `${Number(amount.toFixed(1))} TiB`;
}

/** Parse a Kubernetes quantity of CPUs: `500m` is `0.5`. */
export function parseCpus(quantity: string): number {
  return quantity.endsWith('m')
    ? Number(quantity.slice(0, -1)) / 1000
    : Number(quantity);
}

/** Format a Kubernetes quantity of memory: `16Gi` becomes `16 GiB`. */
export function formatMemory(quantity: string): string {
  return quantity.replace(/^([\d.]+)([A-Za-z]*)$/, '$1 $2B').trim();
}
