/** How far a job is: a bar of its cells, and a clock. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { type ReactElement, useEffect, useState } from 'react';

import { elapsed, type Job } from '../jobs/job';
import { duration } from './format';
import { progress } from './statusText';

/** What parts of a job's line are given. */
export type Told = { job: Job; trans: TranslationBundle };

/** How far a run is. */
export function Bar({ job, trans }: Told): ReactElement | null {
  const { cells_done, cells_total } = job.progress;
  const words = progress(job, trans);
  return words === null ? null : (
    <div
      className="jp-ToJob-bar"
      role="progressbar"
      aria-label={trans.__('Cells of %1', job.name)}
      aria-valuemin={0}
      aria-valuemax={cells_total}
      aria-valuenow={cells_done}
      aria-valuetext={words}
    >
      <span style={{ width: `${(100 * cells_done) / cells_total}%` }} />
    </div>
  );
}

/** The cell that a run is at, and how long it has taken so far. */
export function Clock({ job, trans }: Told): ReactElement | null {
  const now = useNow(job.started !== null);
  const seconds = elapsed(job, now);
  const said = [
    job.state === 'running' ? progress(job, trans) : null,
    seconds === null ? null : duration(Math.floor(seconds), trans)
  ].filter(Boolean);
  return said.length === 0 ? null : <span> · {said.join(' · ')}</span>;
}

/** The time, told anew each second while somebody wants it; nothing is asked of the server. */
function useNow(isWanted: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!isWanted) {
      return;
    }
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [isWanted]);
  return now;
}
