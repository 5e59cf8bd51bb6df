/**
 * Remembers the choices for each notebook, so that it can be submitted again with two keystrokes.
 * The newest job of the notebook knows them, in whichever page or terminal it was submitted. Only
 * the suggested files that were declined, the names of environment variables, and the defaults that
 * the changed parameters had then are in no job: JupyterLab's state has them. What a sweep has
 * varied is left out: the values of its last run are nobody's choice, and would override those that
 * the notebook was given since.
 */
import type { IStateDB } from '@jupyterlab/statedb';
import type { ReadonlyPartialJSONValue } from '@lumino/coreutils';

import { type Choices, choicesOfJob, type Job } from '../jobs/job';
import { jobsOf, variedParameters } from '../jobs/sweep';
import type { IJobs } from '../tokens';

/**
 * Choices for one notebook, the suggested files that were declined, the names of environment
 * variables, whose values are not remembered, and defaults that parameters had.
 */
export type RememberedChoices = { choices?: Choices } & Kept;

/** What JupyterLab's state keeps of a notebook. */
type Kept = {
  declined?: string[];
  variables?: string[];
  /** The source text that the defaults of the changed parameters had when they were sent. */
  defaults?: Record<string, string>;
};

/** What is kept with the job, or its group, that was sent then: `defaults` are about that one. */
type Entry = Kept & { sent?: string };

/** What is remembered of the loaded jobs, and then of all jobs if those may not know it. */
export type Memories = {
  now: RememberedChoices;
  later: Promise<RememberedChoices> | null;
};

/** The key in the state database, which older versions used for the choices, too. */
const KEY = 'jupyter-to-job:choices';

/** How many notebooks are remembered. The one submitted longest ago is dropped first. */
const MAX_NOTEBOOKS = 50;

/** What the memory needs of the jobs. */
export type KnownJobs = Pick<
  IJobs,
  'all' | 'getNewestOf' | 'findNewestOf' | 'loadGroup'
>;

export class ChoiceMemory {
  constructor(
    private readonly _jobs: KnownJobs,
    private readonly _state: IStateDB | null
  ) {}

  /** Load what is remembered of a notebook, without waiting for the server. */
  async load(path: string): Promise<Memories> {
    const kept = await this._loadKept(path);
    const toMemory = (job: Job | null | undefined): RememberedChoices => {
      const { sent, defaults, ...others } = kept;
      return {
        ...(job && { choices: this._choicesOf(job) }),
        ...others,
        ...(defaults && job && sent === sentName(job) && { defaults })
      };
    };
    const newest = this._jobs.getNewestOf(path);
    // Of a group only some jobs may be loaded, which do not tell all that was varied.
    const isKnown = newest !== undefined && newest.group === null;
    return {
      now: toMemory(newest),
      later: isKnown ? null : this._findNewestOf(path).then(toMemory)
    };
  }

  /** Find the newest job of a notebook, and load the group that it belongs to. */
  private async _findNewestOf(path: string): Promise<Job | null> {
    const newest = await this._jobs.findNewestOf(path);
    if (newest !== null && newest.group !== null) {
      await this._jobs.loadGroup(newest.group).catch(() => undefined);
    }
    return newest;
  }

  /** The choices of a job, without the parameters that were varied in its group. */
  private _choicesOf(job: Job): Choices {
    const { parameters, ...choices } = choicesOfJob(job);
    const members = job.group === null ? [] : jobsOf(this._jobs.all, job.group);
    const varied = variedParameters(
      members.filter(({ notebook }) => notebook === job.notebook)
    );
    const kept = Object.entries(parameters ?? {}).filter(
      ([name]) => !varied.has(name)
    );
    return {
      ...choices,
      ...(kept.length > 0 && { parameters: Object.fromEntries(kept) })
    };
  }

  /** Save what no job knows. Never fails: a lost memory must not disturb a submission. */
  async save(
    path: string,
    job: Job,
    { declined = [], variables = [], defaults = {} }: Kept
  ): Promise<void> {
    const entries = await this._loadEntries();
    const others = entries.filter(([notebook]) => notebook !== path);
    const kept: Entry = {
      ...(declined.length > 0 && { declined }),
      ...(variables.length > 0 && { variables }),
      ...(Object.keys(defaults).length > 0 && {
        defaults,
        sent: sentName(job)
      })
    };
    const added: MemoryEntry[] =
      Object.keys(kept).length > 0 ? [[path, kept]] : [];
    this._entries = [...added, ...others].slice(0, MAX_NOTEBOOKS);
    const value = this._entries as unknown as ReadonlyPartialJSONValue;
    await this._state?.save(KEY, value).catch(error => {
      console.warn('jupyter-to-job: the choices were not remembered', error);
    });
  }

  private async _loadKept(path: string): Promise<Entry> {
    const entries = await this._loadEntries();
    const kept = entries.find(([notebook]) => notebook === path)?.[1];
    return {
      declined: kept?.declined ?? [],
      ...(kept?.variables && { variables: kept.variables }),
      ...(kept?.defaults && { defaults: kept.defaults, sent: kept.sent })
    };
  }

  /** Load all entries, once: only this page writes them while it lives. */
  private async _loadEntries(): Promise<MemoryEntry[]> {
    if (this._entries === null) {
      const value: unknown = await this._state?.fetch(KEY).catch(() => null);
      this._entries = Array.isArray(value) ? value.filter(isEntry) : [];
    }
    return this._entries;
  }

  private _entries: MemoryEntry[] | null = null;
}

type MemoryEntry = [path: string, remembered: Entry];

/** What was sent: a group, or a job alone. */
function sentName({ name, group }: Job): string {
  return group ?? name;
}

/** Whether a stored entry has our format: another version may have written it. */
function isEntry(entry: unknown): entry is MemoryEntry {
  return (
    Array.isArray(entry) &&
    typeof entry[0] === 'string' &&
    typeof entry[1] === 'object' &&
    entry[1] !== null
  );
}
