/**
 * A plot of a metric over a parameter: a point for each run, and a line through the means of each
 * series. Series differ by shape as well as colour.
 */
import { HTMLSelect } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReactElement } from 'react';

import type { ResultColumn } from '../jobs/sweep';
import { columnTitle, isOutcome, type Row } from './columns';
import { draw, type Drawing, MAX_SERIES } from './drawing';
import type { PlotChoice, ResultsModel } from './model';

const WIDTH = 640;
const HEIGHT = 320;
const MARGIN = { left: 76, right: 32, top: 12, bottom: 48 };

type Props = { model: ResultsModel; trans: TranslationBundle };

export function Plot({ model, trans }: Props): ReactElement | null {
  const { results, plot } = model;
  if (results === null || model.outcomeColumns.length === 0) {
    return null;
  }
  const find = (name: string) =>
    results.columns.find(column => column.name === name);
  const columns = {
    x: find(plot.x),
    y: find(plot.y),
    series: find(plot.series)
  };
  const drawing = draw(results.rows as Row[], columns, trans);
  const title = (column: ResultColumn | undefined) =>
    column === undefined ? '' : columnTitle(column, trans);
  return (
    <figure className="jp-ToJobResults-plot">
      <PlotControls model={model} trans={trans} />
      <Chart
        drawing={drawing}
        xTitle={title(columns.x)}
        yTitle={title(columns.y)}
        best={model.bestJob}
        label={trans.__(
          '%1 over %2: %3 runs. The table below has their values.',
          title(columns.y),
          title(columns.x),
          drawing.points.length
        )}
      />
      {drawing.series.length > 0 && (
        <Legend series={drawing.series} title={title(columns.series)} />
      )}
    </figure>
  );
}

function PlotControls({ model, trans }: Props): ReactElement {
  const { plot, outcomeColumns, results } = model;
  const shown = model.columns.filter(({ pictures }) => !pictures);
  /** What differs, and what is chosen, also where the matrix has no such column. */
  const offered = (chosen: string) =>
    (results?.columns ?? []).filter(
      column =>
        column.name === chosen || (column.differs && shown.includes(column))
    );
  const choice = (
    field: keyof PlotChoice,
    label: string,
    columns: readonly ResultColumn[],
    none?: string
  ) => (
    <label>
      {label}{' '}
      <HTMLSelect
        value={plot[field]}
        onChange={({ target }) => model.setPlot({ [field]: target.value })}
      >
        {none !== undefined && <option value="">{none}</option>}
        {columns.map(column => (
          <option key={column.name} value={column.name}>
            {columnTitle(column, trans)}
          </option>
        ))}
      </HTMLSelect>
    </label>
  );
  const settings = offered(plot.series).filter(column => !isOutcome(column));
  return (
    <figcaption>
      {choice('y', trans.__('Plot'), outcomeColumns)}
      {choice('x', trans.__('over'), offered(plot.x))}
      {choice('series', trans.__('split by'), settings, '—')}
    </figcaption>
  );
}

type ChartProps = {
  drawing: Drawing;
  xTitle: string;
  yTitle: string;
  label: string;
  best: string | null;
};

const toX = (place: number) =>
  MARGIN.left + place * (WIDTH - MARGIN.left - MARGIN.right);
const toY = (place: number) =>
  HEIGHT - MARGIN.bottom - place * (HEIGHT - MARGIN.top - MARGIN.bottom);

function Chart(props: ChartProps): ReactElement {
  const { drawing, label, best } = props;
  return (
    <svg
      className="jp-ToJobResults-chart"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label={label}
    >
      <Axes {...props} />
      {drawing.lines.map(({ series, points }) => (
        <polyline
          key={series}
          className={`jp-mod-series${series}`}
          points={points.map(({ x, y }) => `${toX(x)},${toY(y)}`).join(' ')}
        />
      ))}
      {drawing.points.map(({ job, x, y, series, text }) => (
        <path
          key={job}
          className={`jp-mod-series${series}${job === best ? ' jp-mod-best' : ''}`}
          transform={`translate(${toX(x)} ${toY(y)})`}
          d={SHAPES[series]}
        >
          <title>{text}</title>
        </path>
      ))}
    </svg>
  );
}

/** A circle, a square, a triangle, a diamond, a cross and a triangle upside down. */
const SHAPES = [
  'M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z',
  'M-4 -4H4V4H-4Z',
  'M0 -5L5 4H-5Z',
  'M0 -5.5L5.5 0L0 5.5L-5.5 0Z',
  'M-5 -2H-2V-5H2V-2H5V2H2V5H-2V2H-5Z',
  'M0 5L5 -4H-5Z'
];

function Axes({ drawing, xTitle, yTitle }: ChartProps): ReactElement {
  const bottom = HEIGHT - MARGIN.bottom;
  const middle = (MARGIN.top + bottom) / 2;
  return (
    <g className="jp-ToJobResults-axes">
      {drawing.yTicks.map(({ place, text }) => (
        <g key={text} transform={`translate(0 ${toY(place)})`}>
          <line x1={MARGIN.left} x2={WIDTH - MARGIN.right} />
          <text x={MARGIN.left - 8} dy="0.32em" textAnchor="end">
            {text}
          </text>
        </g>
      ))}
      {drawing.xTicks.map(({ place, text }) => (
        <text key={text} x={toX(place)} y={bottom + 16} textAnchor="middle">
          {shorten(text)}
        </text>
      ))}
      <text x={(MARGIN.left + WIDTH) / 2} y={HEIGHT - 8} textAnchor="middle">
        {xTitle}
      </text>
      <text
        transform={`translate(14 ${middle}) rotate(-90)`}
        textAnchor="middle"
      >
        {yTitle}
      </text>
    </g>
  );
}

function shorten(text: string): string {
  return text.length > 12 ? `${text.slice(0, 11)}…` : text;
}

function Legend(props: { series: string[]; title: string }): ReactElement {
  const { series, title } = props;
  return (
    <ul className="jp-ToJobResults-legend" aria-label={title}>
      <li aria-hidden="true">{title}:</li>
      {series.slice(0, MAX_SERIES).map((name, index) => (
        <li key={name}>
          <svg viewBox="-7 -7 14 14" aria-hidden="true">
            <path className={`jp-mod-series${index}`} d={SHAPES[index]} />
          </svg>
          {index === MAX_SERIES - 1 && series.length > MAX_SERIES
            ? `${name} …`
            : name}
        </li>
      ))}
    </ul>
  );
}
