/** The columns of the matrix: which ones are shown, and how their values read. */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { ResultColumn, Results } from '../jobs/sweep';
import { formatBytes, formatDuration } from '../ui/format';

/** A value of the table: of a picture its MIME type. */
export type Value = string | number | boolean | null;

export type Row = Record<string, Value>;

/** Columns that the matrix shows in its own way, or not at all. */
const OTHER_PLACES = ['job', 'state', 'result'];

/**
 * The columns to show: metrics, times and amounts, and of all else what differs between the jobs.
 * Columns in which no job has a value are left out. With `showsAll` every column is shown.
 */
export function listColumns(
  { columns, rows }: Results,
  showsAll: boolean
): ResultColumn[] {
  return columns.filter(column => {
    if (OTHER_PLACES.includes(column.name) && column.kind !== 'parameter') {
      return false;
    }
    const isEmpty = rows.every(row => valueOf(row, column.name) === null);
    return showsAll || (!isEmpty && (isOutcome(column) || column.differs));
  });
}

/** Whether a column has what came out of the runs, and not what went into them. */
export function isOutcome({ kind }: Pick<ResultColumn, 'kind'>): boolean {
  return kind === 'metric' || kind === 'usage';
}

export function valueOf(row: Results['rows'][number], name: string): Value {
  return (row[name] ?? null) as Value;
}

/** The columns whose values are numbers, at least one. */
export function numberColumns({ columns, rows }: Results): ResultColumn[] {
  return columns.filter(({ name }) => {
    const values = rows.map(row => valueOf(row, name));
    return (
      values.some(value => typeof value === 'number') &&
      values.every(value => value === null || typeof value === 'number')
    );
  });
}

/** What a column is called: words for what the server measures, and else its own name. */
export function columnTitle(
  { name, kind }: ResultColumn,
  trans: TranslationBundle
): string {
  const titles: Record<string, string> = {
    job: trans.__('Job'),
    notebook: trans.__('Notebook'),
    flavor: trans.__('Flavor'),
    device: trans.__('Device'),
    seconds: trans.__('Time'),
    memory_peak: trans.__('Peak memory'),
    cpu_mean: trans.__('CPUs used'),
    gpu_utilisation_mean: trans.__('GPU use'),
    gpu_memory_peak: trans.__('Peak GPU memory')
  };
  const isOwn = kind === 'job' || kind === 'usage';
  return (isOwn && titles[name]) || name;
}

/** A value as the matrix shows it. */
export function valueText(
  { name, kind }: Pick<ResultColumn, 'name' | 'kind'>,
  value: Value,
  trans: TranslationBundle
): string {
  if (value === null) {
    return '';
  }
  if (kind === 'usage' && typeof value === 'number') {
    if (name === 'seconds') {
      return formatDuration(value, trans);
    }
    if (name.endsWith('memory_peak')) {
      return formatBytes(value);
    }
    if (name === 'gpu_utilisation_mean') {
      return `${Math.round(value * 100)} %`;
    }
  }
  return typeof value === 'number' ? numberText(value) : String(value);
}

/** A number as the command line has it: whole ones exactly, others with six digits. */
function numberText(value: number): string {
  if (Number.isSafeInteger(value) || !Number.isFinite(value)) {
    return String(value); // The browser may have rounded one that is larger.
  }
  const [digits, power] = value.toExponential(5).split('e') as [string, string];
  return Number(power) >= -4 && Number(power) < 6
    ? String(Number(value.toPrecision(6)))
    : `${Number(digits)}e${power[0]}${power.slice(1).padStart(2, '0')}`;
}

/** Compare values: numbers by size, texts by their words; what is missing comes last. */
export function compareValues(
  a: Value,
  b: Value,
  isDescending: boolean
): number {
  if (a === null || b === null) {
    return Number(a === null) - Number(b === null);
  }
  const order =
    typeof a === 'string' || typeof b === 'string'
      ? String(a).localeCompare(String(b), undefined, { numeric: true })
      : Number(a) - Number(b);
  return isDescending ? -order : order;
}
