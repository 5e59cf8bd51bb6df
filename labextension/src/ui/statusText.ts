/** Describes a job: its status, what failed, and what it used. */
import {
  nullTranslator,
  type TranslationBundle
} from '@jupyterlab/translation';

import { elapsedSeconds, isFinal, type Job } from '../jobs/job';
import { formatBytes, formatDuration } from './format';
import { startTimeText, waitReason } from './waitText';

/** The status in a few words, with the run's time once it has ended. */
export function statusText(job: Job, trans: TranslationBundle): string {
  const text = stateText(job, trans);
  const seconds = isFinal(job) ? elapsedSeconds(job) : null;
  return seconds === null
    ? text
    : trans.__('%1 after %2', text, formatDuration(seconds, trans));
}

/** The status in a word or two. */
export function stateText(job: Job, trans: TranslationBundle): string {
  if (job.cancel_requested && job.finished === null) {
    return trans.__('Being cancelled');
  }
  switch (job.state) {
    case 'queued':
      return queuedText(job, trans);
    case 'starting':
      return trans.__('Starting');
    case 'running':
      return trans.__('Running');
    case 'succeeded':
      return trans.__('Succeeded');
    case 'failed':
      return trans.__('Failed');
    case 'cancelled':
      return trans.__('Cancelled');
  }
}

function queuedText({ position }: Job, trans: TranslationBundle): string {
  if (position === null) {
    return trans.__('Queued');
  }
  return position === 1
    ? trans.__('Queued: next in line')
    : trans.__('Queued: place %1 in line', position);
}

/** A note below the status: why the job failed or waits, and why its result was not delivered. */
export function noteText(job: Job, trans: TranslationBundle): string | null {
  const { delivery, state } = job;
  const stateNote =
    state === 'failed'
      ? failureText(job, trans)
      : (job.message ?? waitingText(job, trans));
  const deliveryNote =
    delivery.state === 'held' || delivery.state === 'failed'
      ? trans.__('Not delivered: %1', delivery.message ?? '')
      : null;
  return [stateNote, deliveryNote].filter(Boolean).join(' ') || null;
}

function waitingText(job: Job, trans: TranslationBundle): string | null {
  if (job.state !== 'queued') {
    return null;
  }
  if (job.reason !== null) {
    return capitalize(reasonText(job.reason, trans) ?? job.reason);
  }
  // An older server does not send it.
  const sentences = job.wait
    ? [waitReason(job.wait, trans), startTimeText(job.wait, Date.now(), trans)]
    : [];
  return sentences.filter(Boolean).join(' ') || null;
}

function capitalize(text: string): string {
  return text.charAt(0).toLocaleUpperCase() + text.slice(1);
}

/**
 * The running cell as `cell 3 of 7`: its place among all cells of the notebook that was sent, as in
 * JupyterLab's status bar. Null if none runs.
 */
export function progressText(
  { progress: { current_cell, cells } }: Job,
  trans: TranslationBundle
): string | null {
  return current_cell === null || cells === 0
    ? null
    : trans.__('cell %1 of %2', current_cell + 1, cells);
}

/**
 * What an ended job used of its resources, and which flavor would suit it; null if nothing is
 * known: `Used 0.9 of 4 CPU, 1.2 of 16 GiB; small would have been enough.`
 */
export function usageText(job: Job, trans: TranslationBundle): string | null {
  const { enough, larger } = job.usage ?? {};
  const used = usageFigures(job, trans).join(trans.__(', '));
  if (used === '') {
    return null;
  }
  if (typeof enough === 'string') {
    return trans.__('Used %1; %2 would have been enough.', used, enough);
  }
  return typeof larger === 'string'
    ? trans.__('Used %1; %2 has more memory.', used, larger)
    : trans.__('Used %1.', used);
}

/** What an ended job used of its resources, as far as it is known. */
export function usageFigures(job: Job, trans: TranslationBundle): string[] {
  const usage = job.usage ?? {};
  // An unknown number is NaN, with which each comparison is false.
  const numberOf = (key: string) => Number(usage[key] ?? NaN);
  const [cpu, cores] = [numberOf('cpu_mean'), numberOf('cpu_given')];
  const memoryPeak = numberOf('memory_peak');
  const memoryLimit = numberOf('memory_given');
  const gpuShare = numberOf('gpu_utilisation_mean');
  return [
    cpu >= 0 &&
      cores > 0 &&
      trans.__('%1 of %2 CPU', cpu.toFixed(1), Number(cores.toFixed(2))),
    memoryPeak >= 0 &&
      memoryLimit > 0 &&
      usedOfText(memoryPeak, memoryLimit, trans),
    usage.gpu_idle === true
      ? trans.__('no GPU')
      : gpuShare >= 0 && trans.__('%1 % of its GPU', Math.round(gpuShare * 100))
  ].filter(text => text !== false);
}

/** Format used bytes of a limit, both in the limit's unit: `1.2 of 16 GiB`, `0.05 of 16 GiB`. */
function usedOfText(
  used: number,
  limit: number,
  trans: TranslationBundle
): string {
  const limitText = formatBytes(limit);
  const unit = limit / Number(limitText.split(' ')[0]);
  const share = used / unit;
  const amount = share < 0.01 ? '<0.01' : share.toFixed(share < 0.1 ? 2 : 1);
  return trans.__('%1 of %2', amount, limitText);
}

/** The words for a reason; null for a reason that this version does not know. */
export function reasonText(
  name: string,
  trans: TranslationBundle
): string | null {
  const texts: Record<string, string> = {
    CellError: trans.__('a cell raised an error'),
    KernelDied: trans.__('the kernel died'),
    OutOfMemory: trans.__('it needed more memory than its flavor has'),
    GpuOutOfMemory: trans.__('it needed more GPU memory than there is'),
    DeadlineExceeded: trans.__('its time limit was reached'),
    ExitedEarly: trans.__('a cell ended the run'),
    InputRequested: trans.__('a cell asked for input, and nobody is there'),
    DiskFull: trans.__('the disk is full'),
    BadNotebook: trans.__('the notebook cannot be run'),
    NoKernel: trans.__('its kernel is missing or did not start'),
    RunnerMissing: trans.__('the runner is missing where it ran'),
    ImageUnavailable: trans.__('its container image cannot be had'),
    Unschedulable: trans.__('no machine can take it'),
    QuotaExceeded: trans.__('it is over the quota'),
    GroupLimit: trans.__('its group runs as many jobs as it may'),
    Evicted: trans.__('its machine ran short of something and ended it'),
    Preempted: trans.__('it had to make room for a more urgent job'),
    NodeLost: trans.__('its machine was lost'),
    Terminated: trans.__('it was told to stop'),
    Lost: trans.__('it was killed, or its machine went away'),
    BackendError: trans.__('what runs the jobs had an error'),
    Damaged: trans.__('its record is damaged')
  };
  return texts[name] ?? null;
}

/**
 * The server's message for this job, or else the reason in words. In another language than the
 * message's the reason comes first: in the same one the message says it again.
 */
export function failureText(job: Job, trans: TranslationBundle): string {
  const { message, reason } = job;
  const text = reason === null ? null : reasonText(reason, trans);
  const isSaid =
    message !== null &&
    reason !== null &&
    text === reasonText(reason, nullTranslator.load(''));
  const sentences = [
    !isSaid && text !== null && trans.__('%1.', capitalize(text)),
    message
  ].filter(Boolean);
  return sentences.length > 0 ? sentences.join(' ') : (reason ?? '');
}
