/** Shows a job's progress: a bar of its cells, and the elapsed time. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { type ReactElement, useEffect, useState } from 'react';

import { elapsedSeconds, type Job } from '../jobs/job';
import { formatDuration } from './format';
import { pressGate } from './press';
import { noteText, progressText } from './statusText';

/** How often a note is made again: an estimate is said in minutes. */
const NOTE_PERIOD_MS = 30_000;

export type JobTextProps = { job: Job; trans: TranslationBundle };

/** The share of cells that are done. */
export function ProgressBar({ job, trans }: JobTextProps): ReactElement | null {
  const { cells_done, cells_total } = job.progress;
  const text = progressText(job, trans);
  return cells_total === 0 ? null : (
    <div
      className="jp-ToJob-bar"
      role="progressbar"
      aria-label={trans.__('Cells of %1', job.name)}
      aria-valuemin={0}
      aria-valuemax={cells_total}
      aria-valuenow={cells_done}
      aria-valuetext={text ?? undefined}
    >
      <span style={{ width: `${(100 * cells_done) / cells_total}%` }} />
    </div>
  );
}

/** The current cell, and how long the job has run. */
export function ElapsedTime({ job, trans }: JobTextProps): ReactElement | null {
  const now = useNow(job.started !== null);
  const seconds = elapsedSeconds(job, now);
  const parts = [
    job.state === 'running' ? progressText(job, trans) : null,
    seconds === null ? null : formatDuration(Math.floor(seconds), trans)
  ].filter(Boolean);
  return parts.length === 0 ? null : <span> · {parts.join(' · ')}</span>;
}

/** A job's note, made again while the job waits: the time at which it may start goes by. */
export function useNote({ job, trans }: JobTextProps): string | null {
  const hasEstimate = job.state === 'queued' && Boolean(job.wait?.start);
  useNow(hasEstimate, NOTE_PERIOD_MS);
  return noteText(job, trans);
}

/** The current time, updated each second, or in another period, while `isActive`. */
export function useNow(isActive: boolean, periodMs = 1000): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!isActive) {
      return;
    }
    const update = () => setNow(Date.now());
    update();
    const timer = setInterval(() => pressGate.run(update), periodMs);
    return () => {
      clearInterval(timer);
      pressGate.forget(update);
    };
  }, [isActive, periodMs]);
  return now;
}
