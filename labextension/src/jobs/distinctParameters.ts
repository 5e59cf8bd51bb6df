/**
 * Finds the parameters in which the jobs of a notebook differ: they tell jobs apart that look alike
 * otherwise. A list may hold 10,000 jobs, so a job that is added or removed costs only its own
 * parameters.
 */
import type { Job } from './job';

type NotebookParameters = {
  /** The number of the notebook's jobs. */
  count: number;
  /** For each parameter the number of jobs with each value; values are JSON. */
  values: Map<string, Map<string, number>>;
  /** The names of parameters that differ; null if they have to be determined again. */
  distinct: readonly string[] | null;
};

type ParameterFields = Pick<Job, 'notebook' | 'parameters'>;

/** Counts the parameters of jobs by notebook. */
export class DistinctParameters {
  add(job: ParameterFields): void {
    this._count(job, 1);
  }

  /** Remove a job that was added with the same parameters. */
  remove(job: ParameterFields): void {
    this._count(job, -1);
  }

  /**
   * The names of a job's parameters in which the jobs of its notebook differ, in the job's order.
   * One that only some of them have differs, too.
   */
  namesOf({ notebook, parameters }: ParameterFields): readonly string[] {
    const known = this._notebooks.get(notebook);
    if (known === undefined) {
      return [];
    }
    known.distinct ??= [...known.values.keys()].filter(name =>
      isDistinct(known, name)
    );
    return known.distinct.length === 0
      ? known.distinct
      : Object.keys(parameters).filter(name => known.distinct!.includes(name));
  }

  private _count({ notebook, parameters }: ParameterFields, by: number): void {
    const known = this._notebooks.get(notebook) ?? {
      count: 0,
      values: new Map<string, Map<string, number>>(),
      distinct: null
    };
    known.count += by;
    known.distinct = null;
    for (const [name, value] of Object.entries(parameters)) {
      const counts = known.values.get(name) ?? new Map<string, number>();
      changeCount(counts, JSON.stringify(value), by);
      changeKey(known.values, name, counts, counts.size === 0);
    }
    changeKey(this._notebooks, notebook, known, known.count === 0);
  }

  private readonly _notebooks = new Map<string, NotebookParameters>();
}

function isDistinct(
  { count, values }: NotebookParameters,
  name: string
): boolean {
  const counts = values.get(name) ?? new Map<string, number>();
  const [first = 0] = counts.values();
  return counts.size > 1 || first < count;
}

function changeCount(
  counts: Map<string, number>,
  key: string,
  by: number
): void {
  const count = (counts.get(key) ?? 0) + by;
  changeKey(counts, key, count, count <= 0);
}

/** Set an entry of a map, or remove it. */
function changeKey<T>(
  map: Map<string, T>,
  key: string,
  value: T,
  isGone: boolean
): void {
  if (isGone) {
    map.delete(key);
  } else {
    map.set(key, value);
  }
}
