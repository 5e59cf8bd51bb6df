/** Times and amounts as people write them. */
import type { TranslationBundle } from '@jupyterlab/translation';

/** Seconds as `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min` or `4 d 3 h`. */
export function duration(seconds: number, trans: TranslationBundle): string {
  if (seconds < 9.95) {
    return trans.__('%1 s', Number(Math.max(seconds, 0).toFixed(1)));
  }
  const whole = Math.round(seconds);
  const days = Math.floor(whole / 86_400);
  const hours = Math.floor(whole / 3_600) % 24;
  const minutes = Math.floor(whole / 60) % 60;
  const parts = [
    [days, trans.__('%1 d', days)],
    [hours, trans.__('%1 h', hours)],
    [minutes, trans.__('%1 min', minutes)],
    [whole % 60, trans.__('%1 s', whole % 60)]
  ] as const;
  const first = parts.findIndex(([count]) => count > 0);
  return parts
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([, words]) => words)
    .join(' ');
}

const DURATION =
  /^(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?$/;

/** Seconds that `90s`, `45m`, `1h30m`, `1d` or plain seconds stand for; null for anything else. */
export function parseDuration(text: string): number | null {
  const plain = /^\d{1,9}$/.test(text) ? Number(text) : null;
  const parts = DURATION.exec(text)?.slice(1) ?? [];
  const sizes = [86_400, 3_600, 60, 1];
  const sum = parts.reduce(
    (seconds, part, at) => seconds + Number(part ?? 0) * sizes[at]!,
    0
  );
  return plain || sum || null;
}

/** Bytes as `512 B`, `3.4 MiB`. */
export function size(bytes: number): string {
  let amount = bytes;
  for (const unit of ['B', 'KiB', 'MiB', 'GiB']) {
    if (amount < 1024) {
      return `${Number(amount.toFixed(unit === 'B' ? 0 : 1))} ${unit}`;
    }
    amount /= 1024;
  }
  return `${Number(amount.toFixed(1))} TiB`;
}

/** A quantity of CPUs as Kubernetes writes it, as people do: `500m` is `0.5`. */
export function cpus(quantity: string): number {
  return quantity.endsWith('m')
    ? Number(quantity.slice(0, -1)) / 1000
    : Number(quantity);
}

/** A quantity of memory as Kubernetes writes it, as people do: `16Gi` is `16 GiB`. */
export function memory(quantity: string): string {
  return quantity.replace(/^([\d.]+)([A-Za-z]*)$/, '$1 $2B').trim();
}
