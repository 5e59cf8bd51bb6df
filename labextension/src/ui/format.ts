/** Times, amounts and reasons as people say them. */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { Isolation } from '../jobs/catalog';
import type { Job } from '../jobs/job';

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

/** What a device's isolation means for the one who runs on it. */
export function isolation(kind: Isolation, trans: TranslationBundle): string {
  switch (kind) {
    case 'full':
      return trans.__('All of it is yours while the job runs.');
    case 'hardware':
      return trans.__(
        'A part of a GPU that the hardware itself keeps apart from its neighbours.'
      );
    case 'software':
      return trans.__(
        'Shares the GPU with others: software keeps you to your share (software isolation).'
      );
    case 'none':
      return trans.__(
        'Shares the GPU with others and nothing keeps you apart: memory and speed depend on them.'
      );
  }
}

/** Why a job failed, in plain words; null for a reason that this version does not know. */
export function reason(name: string, trans: TranslationBundle): string | null {
  const words: Record<string, string> = {
    CellError: trans.__('a cell raised an error'),
    KernelDied: trans.__('the kernel died'),
    OutOfMemory: trans.__('it needed more memory than its flavor has'),
    GpuOutOfMemory: trans.__('it needed more GPU memory than there is'),
    DeadlineExceeded: trans.__('its time limit was reached'),
    ExitedEarly: trans.__('a cell ended the run early'),
    InputRequested: trans.__('a cell asked for input, and nobody is there'),
    DiskFull: trans.__('the disk is full'),
    BadNotebook: trans.__('the notebook cannot be run'),
    NoKernel: trans.__('its kernel is missing or did not start'),
    RunnerMissing: trans.__('the runner is missing where it ran'),
    ImageUnavailable: trans.__('its container image cannot be had'),
    Unschedulable: trans.__('no machine can take it'),
    QuotaExceeded: trans.__('it is over the quota'),
    Evicted: trans.__('its machine ran short of something and ended it'),
    Preempted: trans.__('it had to make room for a more urgent job'),
    NodeLost: trans.__('its machine was lost'),
    Terminated: trans.__('it was told to stop'),
    Lost: trans.__('it was killed, or its machine went away'),
    BackendError: trans.__('what runs the jobs had an error')
  };
  return words[name] ?? null;
}

/** The reason in plain words, then what the server said of this very case. */
export function whyItFailed(job: Job, trans: TranslationBundle): string {
  const words = job.reason === null ? null : reason(job.reason, trans);
  const said = [words && trans.__('%1.', words), job.message].filter(Boolean);
  return said.length > 0 ? said.join(' ') : (job.reason ?? '');
}
