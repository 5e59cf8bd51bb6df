/** The columns of the table: what each shows of a job, and what it sorts by. */
import type { TranslationBundle } from '@jupyterlab/translation';

import { formatParameters, formatValue } from '../jobs/filter';
import { elapsedSeconds, type Job, resultPath } from '../jobs/job';
import type { IJobs } from '../tokens';
import { formatBytes, formatMoment } from '../ui/format';
import { noteText, stateText, usageFigures } from '../ui/statusText';

/** What a column sorts by. Numbers come before texts, and null comes last in both directions. */
export type SortKey = number | string | null;

export type Column = {
  id: string;
  label: string;
  /** Its least width, in em. */
  width: number;
  /** Its share of the room that is left; without it the column never gets wider. */
  grow?: number;
  isNumber?: boolean;
  text: (job: Job) => string;
  sortKey: (job: Job) => SortKey;
};

/** Prefixes of the ids of columns that show one parameter or one metric. */
const PARAMETER = 'parameter.';
const METRIC = 'metric.';

/** The columns that are shown as long as the user has not chosen any. */
export const DEFAULT_COLUMNS: readonly string[] = [
  'name',
  'notebook',
  'state',
  'flavor',
  'parameters',
  'submitted',
  'started',
  'finished',
  'duration',
  'receipt'
];

const STATE_ORDER: readonly Job['state'][] = [
  'running',
  'starting',
  'queued',
  'failed',
  'cancelled',
  'succeeded'
];

/** All columns except those of single parameters and metrics. */
export function createColumns(
  jobs: Pick<IJobs, 'getDistinctParameters'>,
  trans: TranslationBundle
): Column[] {
  return [
    ...identityColumns(jobs, trans),
    ...timeColumns(trans),
    ...usageColumns(trans),
    ...outcomeColumns(trans)
  ];
}

/** The column of an id; null if there is none. A parameter or metric needs no job that has it. */
export function findColumn(
  columns: readonly Column[],
  id: string
): Column | null {
  const known = columns.find(column => column.id === id);
  if (known !== undefined) {
    return known;
  }
  if (id.startsWith(PARAMETER)) {
    const name = id.slice(PARAMETER.length);
    return valueColumn(id, name, ({ parameters }) => parameters[name]);
  }
  if (id.startsWith(METRIC)) {
    const name = id.slice(METRIC.length);
    return valueColumn(id, name, ({ metrics }) => metrics?.[name]?.value);
  }
  return null;
}

/** The ids of the columns of all parameters and metrics that some jobs have. */
export function listValueColumns(jobs: readonly Job[]): {
  parameters: string[];
  metrics: string[];
} {
  const parameters = new Set<string>();
  const metrics = new Set<string>();
  for (const job of jobs) {
    Object.keys(job.parameters).forEach(name => parameters.add(name));
    Object.entries(job.metrics ?? {}).forEach(
      ([name, { picture }]) => picture === null && metrics.add(name)
    );
  }
  return {
    parameters: [...parameters].sort().map(name => PARAMETER + name),
    metrics: [...metrics].sort().map(name => METRIC + name)
  };
}

function valueColumn(
  id: string,
  label: string,
  valueOf: (job: Job) => unknown
): Column {
  return {
    id,
    label,
    width: 6,
    grow: 0.5,
    text: job => formatCell(valueOf(job)),
    sortKey: job => {
      const value = valueOf(job);
      return typeof value === 'number' ? value : formatCell(value) || null;
    }
  };
}

function formatCell(value: unknown): string {
  return value === undefined || value === null ? '' : formatValue(value);
}

function textColumn(
  id: string,
  label: string,
  [width, grow]: [width: number, grow: number],
  text: (job: Job) => string
): Column {
  const sortKey = (job: Job) => text(job).toLowerCase() || null;
  return { id, label, width, grow, text, sortKey };
}

function identityColumns(
  jobs: Pick<IJobs, 'getDistinctParameters'>,
  trans: TranslationBundle
): Column[] {
  return [
    textColumn('name', trans.__('Name'), [12, 1.4], ({ name }) => name),
    textColumn(
      'notebook',
      trans.__('Notebook'),
      [10, 1.2],
      ({ notebook }) => notebook
    ),
    {
      id: 'state',
      label: trans.__('State'),
      width: 10,
      text: job => stateText(job, trans),
      sortKey: ({ state }) => STATE_ORDER.indexOf(state)
    },
    textColumn(
      'flavor',
      trans.__('Flavor and device'),
      [11, 0.4],
      ({ flavor, device }) => `${flavor} · ${device}`
    ),
    textColumn(
      'parameters',
      trans.__('Parameters that differ'),
      [14, 1.2],
      job => formatParameters(job, jobs.getDistinctParameters(job))
    ),
    textColumn('group', trans.__('Group'), [8, 0.8], ({ group }) => group ?? '')
  ];
}

function timeColumns(trans: TranslationBundle): Column[] {
  const moment = (
    id: string,
    label: string,
    timeOf: (job: Job) => string | null
  ): Column => ({
    id,
    label,
    width: 8.5,
    text: job => {
      const time = timeOf(job);
      return time === null ? '' : formatMoment(time, Date.now());
    },
    sortKey: timeOf
  });
  return [
    moment('submitted', trans.__('Submitted'), ({ submitted }) => submitted),
    moment('started', trans.__('Started'), ({ started }) => started),
    moment('finished', trans.__('Ended'), ({ finished }) => finished),
    {
      id: 'duration',
      label: trans.__('Duration'),
      width: 7,
      isNumber: true,
      text: () => '', // The cell shows it, because it grows while the job runs.
      sortKey: job => elapsedSeconds(job)
    }
  ];
}

function usageColumns(trans: TranslationBundle): Column[] {
  const figure = (
    id: string,
    label: string,
    key: string,
    format: (value: number) => string
  ): Column => {
    const valueOf = ({ usage }: Job) =>
      typeof usage?.[key] === 'number' ? usage[key] : null;
    return {
      id,
      label,
      width: 7,
      isNumber: true,
      text: job => {
        const value = valueOf(job);
        return value === null ? '' : format(value);
      },
      sortKey: valueOf
    };
  };
  const percent = (share: number) => trans.__('%1 %', Math.round(share * 100));
  const memory = figure(
    'memory',
    trans.__('Peak memory'),
    'memory_peak',
    formatBytes
  );
  return [
    {
      id: 'receipt',
      label: trans.__('Receipt'),
      width: 11,
      grow: 0.9,
      text: job => usageFigures(job, trans).join(trans.__(', ')),
      sortKey: memory.sortKey
    },
    figure('cpu', trans.__('CPUs used'), 'cpu_mean', cpus => cpus.toFixed(1)),
    memory,
    figure('gpu', trans.__('GPU use'), 'gpu_utilisation_mean', percent),
    figure(
      'gpu-memory',
      trans.__('Peak GPU memory'),
      'gpu_memory_peak',
      formatBytes
    )
  ];
}

function outcomeColumns(trans: TranslationBundle): Column[] {
  return [
    textColumn(
      'note',
      trans.__('Remark'),
      [12, 1.2],
      job => noteText(job, trans) ?? ''
    ),
    textColumn(
      'result',
      trans.__('Result'),
      [10, 1.2],
      job => resultPath(job) ?? ''
    ),
    textColumn(
      'rerun-of',
      trans.__('Rerun of'),
      [12, 1],
      job => job.rerun_of ?? ''
    ),
    {
      id: 'priority',
      label: trans.__('Priority'),
      width: 6,
      isNumber: true,
      text: ({ priority }) => String(priority),
      sortKey: ({ priority }) => priority
    }
  ];
}
