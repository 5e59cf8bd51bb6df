/** Which jobs of a list are shown: by state, notebook and group, and by words in any field. */
import type { Job } from './job';

/** The filter by state. */
export type StateFilter =
  'all' | 'waiting' | 'running' | 'succeeded' | 'failed' | 'cancelled';

export type JobFilter = {
  state: StateFilter;
  /** Words that must all be somewhere in the job, see `searchText`. */
  query: string;
  notebook?: string | null;
  group?: string | null;
};

const FILTER_STATES: Record<StateFilter, readonly Job['state'][]> = {
  all: [],
  waiting: ['queued'],
  running: ['starting', 'running'],
  succeeded: ['succeeded'],
  failed: ['failed'],
  cancelled: ['cancelled']
};

/** Whether a filter hides any job. */
export function isFiltering(filter: JobFilter): boolean {
  const { state, query, notebook, group } = filter;
  return (
    state !== 'all' ||
    query.trim() !== '' ||
    Boolean(notebook) ||
    Boolean(group)
  );
}

/** The function that tells whether a job is shown. */
export function createFilter(filter: JobFilter): (job: Job) => boolean {
  const words = filter.query.toLowerCase().split(/\s+/).filter(Boolean);
  const states = FILTER_STATES[filter.state];
  return job =>
    (states.length === 0 || states.includes(job.state)) &&
    (!filter.notebook || job.notebook === filter.notebook) &&
    (!filter.group || job.group === filter.group) &&
    (words.length === 0 || includesAll(searchText(job), words));
}

/** A value of a parameter as it is shown: text as it is, everything else as JSON. */
export function formatValue(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Some parameters of a job in one line: `rate=0.1, depth=3`. */
export function formatParameters(
  { parameters }: Pick<Job, 'parameters'>,
  names: readonly string[] = Object.keys(parameters)
): string {
  return names
    .map(name => `${name}=${formatValue(parameters[name])}`)
    .join(', ');
}

const searchTexts = new WeakMap<Job, string>();

/**
 * What a search looks at, in lower case: name, notebook, flavor, device, group, reason, message, and
 * parameters as `name=value`.
 */
export function searchText(job: Job): string {
  let text = searchTexts.get(job);
  if (text === undefined) {
    text = [
      job.name,
      job.notebook,
      job.flavor,
      job.device,
      job.group,
      job.reason,
      job.message,
      formatParameters(job)
    ]
      .join('\n')
      .toLowerCase();
    searchTexts.set(job, text);
  }
  return text;
}

function includesAll(text: string, words: readonly string[]): boolean {
  return words.every(word => text.includes(word));
}
