/** Computes what a plot draws: points, lines and ticks, with places from 0 to 1. */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { ResultColumn } from '../jobs/sweep';
import {
  columnTitle,
  type Row,
  type Value,
  valueOf,
  valueText
} from './columns';
import type { PlotChoice } from './model';
import { createOrdinal, createScale, formatTick, type Scale } from './scales';

/** How many series have a shape of their own; further ones share the last. */
export const MAX_SERIES = 6;

/** How many ticks have room on the horizontal axis. */
const MAX_TICKS = 8;

export type Point = {
  job: string;
  x: number;
  y: number;
  series: number;
  text: string;
};

/** What is drawn, with places from 0 to 1. */
export type Drawing = {
  points: Point[];
  lines: { series: number; points: { x: number; y: number }[] }[];
  series: string[];
  xTicks: { place: number; text: string }[];
  yTicks: { place: number; text: string }[];
};

/** Compute what is drawn of the rows that have both values. */
export function draw(
  rows: readonly Row[],
  columns: Record<keyof PlotChoice, ResultColumn | undefined>,
  trans: TranslationBundle
): Drawing {
  const { x, y, series } = columns;
  const shown =
    x === undefined || y === undefined
      ? []
      : rows.filter(
          row =>
            valueOf(row, x.name) !== null &&
            typeof valueOf(row, y.name) === 'number'
        );
  const xScale = createXScale(shown.map(row => valueOf(row, x!.name)));
  const yScale = createScale(shown.map(row => Number(valueOf(row, y!.name))));
  const seriesOf = (row: Row) =>
    series === undefined ? '' : String(valueOf(row, series.name) ?? '');
  const names = [...new Set(shown.map(seriesOf))].sort((a, b) =>
    a.localeCompare(b, undefined, { numeric: true })
  );
  const points = shown.map(row => ({
    job: String(row.job),
    x: xScale.place(valueOf(row, x!.name)),
    y: yScale.place(Number(valueOf(row, y!.name))),
    series: Math.min(names.indexOf(seriesOf(row)), MAX_SERIES - 1),
    text: describeRow(row, [x!, y!, series], trans)
  }));
  return {
    points,
    lines: xScale.isNumeric ? meanLines(points) : [],
    series: series === undefined ? [] : names,
    xTicks: xScale.ticks,
    yTicks: yScale.ticks.map(({ value, text }) => ({
      place: yScale.place(value),
      text
    }))
  };
}

function createXScale(values: readonly Value[]): {
  place: (value: Value) => number;
  ticks: { place: number; text: string }[];
  isNumeric: boolean;
} {
  if (values.every(value => typeof value === 'number')) {
    const scale = createScale(values);
    const ticks = ownTicks(values, scale) ?? scale.ticks;
    return {
      place: value => scale.place(Number(value)),
      ticks: ticks.map(({ value, text }) => ({
        place: scale.place(value),
        text
      })),
      isNumeric: true
    };
  }
  const scale = createOrdinal(values.map(String));
  const step = Math.ceil(scale.ticks.length / MAX_TICKS);
  const ticks = scale.ticks
    .filter((_, index) => index % step === 0)
    .map(({ value, text }) => ({ place: value, text }));
  return {
    place: value => scale.place(String(value)),
    ticks,
    isNumeric: false
  };
}

/** Ticks at the values themselves, as a sweep has few; null if they have no room beside each other. */
function ownTicks(
  values: readonly number[],
  scale: Scale
): Scale['ticks'] | null {
  const distinct = [...new Set(values)].sort((a, b) => a - b);
  const places = distinct.map(scale.place);
  const isRoomy = places.every(
    (place, index) => index === 0 || place - places[index - 1]! >= 1 / MAX_TICKS
  );
  return isRoomy
    ? distinct.map(value => ({ value, text: formatTick(value) }))
    : null;
}

/** The mean of each series at each place, where a series has several places. */
function meanLines(points: readonly Point[]): Drawing['lines'] {
  const sums = new Map<number, Map<number, [sum: number, count: number]>>();
  for (const { series, x, y } of points) {
    const places = sums.get(series) ?? new Map<number, [number, number]>();
    const [sum, count] = places.get(x) ?? [0, 0];
    places.set(x, [sum + y, count + 1]);
    sums.set(series, places);
  }
  return [...sums]
    .filter(([, places]) => places.size > 1)
    .map(([series, places]) => ({
      series,
      points: [...places]
        .sort(([a], [b]) => a - b)
        .map(([x, [sum, count]]) => ({ x, y: sum / count }))
    }));
}

function describeRow(
  row: Row,
  columns: readonly (ResultColumn | undefined)[],
  trans: TranslationBundle
): string {
  const parts = columns.flatMap(column =>
    column === undefined || column.name === 'job'
      ? []
      : [
          `${columnTitle(column, trans)}: ${valueText(column, valueOf(row, column.name), trans)}`
        ]
  );
  return [String(row.job), ...parts].join('\n');
}
