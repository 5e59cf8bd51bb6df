/**
 * Remembers the choices for each notebook, so that it can be submitted again with two keystrokes.
 * The newest job of the notebook knows them, in whichever page or terminal it was submitted. Only
 * the suggested files that were declined and the names of environment variables are in no job:
 * JupyterLab's state has them.
 */
import type { IStateDB } from '@jupyterlab/statedb';
import type { ReadonlyPartialJSONValue } from '@lumino/coreutils';

import { type Choices, choicesOfJob, type Job } from '../jobs/job';
import type { IJobs } from '../tokens';

/**
 * Choices for one notebook, the suggested files that were declined, and the names of environment
 * variables, whose values are not remembered.
 */
export type RememberedChoices = { choices?: Choices } & Kept;

/** What JupyterLab's state keeps of a notebook. */
type Kept = { declined?: string[]; variables?: string[] };

/** What is remembered of the loaded jobs, and then of all jobs if it is not in those. */
export type Memories = {
  now: RememberedChoices;
  later: Promise<RememberedChoices> | null;
};

/** The key in the state database, which older versions used for the choices, too. */
const KEY = 'jupyter-to-job:choices';

/** How many notebooks are remembered. The one submitted longest ago is dropped first. */
const MAX_NOTEBOOKS = 50;

export class ChoiceMemory {
  constructor(
    private readonly _jobs: Pick<IJobs, 'getNewestOf' | 'findNewestOf'>,
    private readonly _state: IStateDB | null
  ) {}

  /** Load what is remembered of a notebook, without waiting for the server. */
  async load(path: string): Promise<Memories> {
    const kept = await this._loadKept(path);
    const toMemory = (job: Job | null | undefined): RememberedChoices => ({
      ...(job && { choices: choicesOfJob(job) }),
      ...kept
    });
    const newest = this._jobs.getNewestOf(path);
    return {
      now: toMemory(newest),
      later:
        newest === undefined
          ? this._jobs.findNewestOf(path).then(toMemory)
          : null
    };
  }

  /** Save what no job knows. Never fails: a lost memory must not disturb a submission. */
  async save(
    path: string,
    declined: string[],
    variables: string[] = []
  ): Promise<void> {
    const entries = await this._loadEntries();
    const others = entries.filter(([notebook]) => notebook !== path);
    const kept: Kept = {
      ...(declined.length > 0 && { declined }),
      ...(variables.length > 0 && { variables })
    };
    const added: MemoryEntry[] =
      Object.keys(kept).length > 0 ? [[path, kept]] : [];
    this._entries = [...added, ...others].slice(0, MAX_NOTEBOOKS);
    const value = this._entries as unknown as ReadonlyPartialJSONValue;
    await this._state?.save(KEY, value).catch(error => {
      console.warn('jupyter-to-job: the choices were not remembered', error);
    });
  }

  private async _loadKept(path: string): Promise<Kept> {
    const entries = await this._loadEntries();
    const kept = entries.find(([notebook]) => notebook === path)?.[1];
    return {
      declined: kept?.declined ?? [],
      ...(kept?.variables && { variables: kept.variables })
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

type MemoryEntry = [path: string, remembered: Kept];

/** Whether a stored entry has our format: another version may have written it. */
function isEntry(entry: unknown): entry is MemoryEntry {
  return (
    Array.isArray(entry) &&
    typeof entry[0] === 'string' &&
    typeof entry[1] === 'object' &&
    entry[1] !== null
  );
}
