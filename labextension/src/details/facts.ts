/** What is known of a job, as labels and texts in groups. */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { JobRecord } from '../api';
import { elapsedSeconds, isFinal, type Job } from '../jobs/job';
import { formatBytes, formatDuration, formatMoment } from '../ui/format';
import { progressText } from '../ui/statusText';

/** A label with a text. `path` is a file in the workspace, and `job` a job, that it names. */
export type Fact = { label: string; text: string; path?: string; job?: string };

type Rows = (readonly [label: string, text: string | null | false])[];

/** The rows that have a text. */
function facts(rows: Rows): Fact[] {
  return rows.flatMap(([label, text]) => (text ? [{ label, text }] : []));
}

/** When what happened to it, and how far it is. */
export function progressFacts(
  job: Job,
  trans: TranslationBundle,
  now = Date.now()
): Fact[] {
  const { progress, submitted, started, finished } = job;
  const elapsed = elapsedSeconds(job, now);
  // The head counts whole seconds, too, while it runs.
  const seconds =
    elapsed === null || isFinal(job) ? elapsed : Math.floor(elapsed);
  const moment = (time: string | null) =>
    time === null ? null : formatMoment(time, now, true);
  return facts([
    [
      trans.__('Cells'),
      progress.cells_total > 0 &&
        trans.__('%1 of %2', progress.cells_done, progress.cells_total)
    ],
    [
      trans.__('Runs'),
      isFinal(job) || job.state !== 'running' ? null : progressText(job, trans)
    ],
    [trans.__('Submitted'), moment(submitted)],
    [trans.__('Started'), moment(started)],
    [trans.__('Ended'), moment(finished)],
    [
      isFinal(job) ? trans.__('Took') : trans.__('Running for'),
      seconds === null ? null : formatDuration(seconds, trans)
    ]
  ]);
}

/** What the submitter chose, and where the job came from. */
export function submissionFacts(job: Job, trans: TranslationBundle): Fact[] {
  const place = job.isolated
    ? trans.__('A copy of the files that were sent along (isolated)')
    : trans.__('The notebook’s own folder');
  const listed = (label: string, texts: readonly string[]) =>
    texts.map(text => ({ label, text }));
  return [
    { label: trans.__('Notebook'), text: job.notebook, path: job.notebook },
    ...facts([[trans.__('Group'), job.group]]),
    ...(job.rerun_of === null
      ? []
      : [
          {
            label: trans.__('Rerun of'),
            text: job.rerun_of,
            job: job.rerun_of
          }
        ]),
    ...facts([
      [trans.__('Flavor'), job.flavor],
      [trans.__('Device'), job.device],
      [trans.__('Works in'), place]
    ]),
    ...listed(trans.__('Sees'), job.mounts),
    ...listed(trans.__('Left behind'), job.left_behind),
    ...facts([
      [trans.__('Result goes to'), job.output],
      [
        trans.__('Time limit'),
        job.max_runtime === null ? null : formatDuration(job.max_runtime, trans)
      ],
      [trans.__('Priority'), job.priority !== 0 && String(job.priority)],
      [trans.__('Backend'), job.backend],
      [trans.__('Owner'), job.owner]
    ])
  ];
}

/** Names with values as JSON: parameters, or metrics. */
export function valueFacts(values: Record<string, unknown>): Fact[] {
  return Object.entries(values).map(([label, value]) => ({
    label,
    text: typeof value === 'string' ? value : JSON.stringify(value)
  }));
}

/** What the run recorded. A picture is named: the result shows it. */
export function metricFacts(job: Job, trans: TranslationBundle): Fact[] {
  return Object.entries(job.metrics ?? {}).flatMap(([label, metric]) =>
    metric.picture === null
      ? valueFacts({ [label]: metric.value })
      : [{ label, text: trans.__('A picture, in the result') }]
  );
}

/** What the run used, each with its peak, its mean, and what there was. */
export function usageFacts(job: Job, trans: TranslationBundle): Fact[] {
  const usage = job.usage ?? {};
  const percent = (share: number) => trans.__('%1 %', Math.round(share * 100));
  const cores = (count: number) =>
    trans.__('%1 CPU', Number(count.toFixed(count < 1 ? 2 : 1)));
  const kinds = [
    [trans.__('Memory'), 'memory', formatBytes],
    [trans.__('CPU'), 'cpu', cores],
    [trans.__('GPU memory'), 'gpu_memory', formatBytes],
    [trans.__('GPU busy'), 'gpu_utilisation', percent]
  ] as const;
  const figure = (key: string, format: (amount: number) => string) =>
    typeof usage[key] === 'number' ? format(usage[key]) : null;
  const rows = kinds.map(([label, key, format]) => {
    const peak = figure(`${key}_peak`, format);
    const mean = figure(`${key}_mean`, format);
    const given = figure(`${key}_given`, format);
    const parts = [
      peak !== null && trans.__('%1 at most', peak),
      mean !== null && trans.__('%1 on average', mean)
    ].filter(Boolean);
    const text = parts.join(trans.__(', '));
    return [
      label,
      text !== '' && given !== null ? trans.__('%1 (of %2)', text, given) : text
    ] as const;
  });
  const seconds = (amount: number) => formatDuration(amount, trans);
  return facts([
    ...rows,
    [trans.__('CPU time'), figure('cpu_seconds', seconds)]
  ]);
}

/** Where the job ran. Of variables there are names only. */
export function environmentFacts(
  record: JobRecord,
  trans: TranslationBundle
): Fact[] {
  const names = (list: readonly string[]) => list.join(trans.__(', '));
  return facts([
    [trans.__('Kernel'), record.kernel],
    ['Python', record.interpreter],
    [trans.__('Machine'), record.host],
    [trans.__('Image'), record.image],
    [trans.__('Variables that were set'), names(record.env)],
    [trans.__('Variables that came along'), names(record.variables)],
    [trans.__('Snapshot'), `sha256 ${record.snapshot_sha256.slice(0, 16)}…`]
  ]);
}

/** How long snapshot, log and result are kept. */
export function retentionText(
  record: JobRecord,
  trans: TranslationBundle,
  now = Date.now()
): string {
  const { cleared, cleared_reason, kept_until, retention } = record;
  if (cleared !== null) {
    const text = trans.__(
      'Snapshot, log and result were removed: %1.',
      formatMoment(cleared, now)
    );
    return cleared_reason === null ? text : `${text} ${cleared_reason}.`;
  }
  if (kept_until !== null) {
    return trans.__(
      'Snapshot, log and result are kept until %1. A delivered notebook stays.',
      formatMoment(kept_until, now)
    );
  }
  return retention === null
    ? trans.__('Snapshot, log and result are kept until you delete the job.')
    : trans.__(
        'Snapshot, log and result are kept for %1 after the delivery. A delivered notebook stays.',
        formatDuration(retention, trans)
      );
}
