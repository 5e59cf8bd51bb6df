/**
 * Remembers the choices for each notebook, so that it can be submitted again with two keystrokes.
 * The newest job of the notebook knows them, in whichever page or terminal it was submitted. Only
 * the suggested files that were declined are in no job: JupyterLab's state has them.
 */
import type { IStateDB } from '@jupyterlab/statedb';
import type { ReadonlyPartialJSONValue } from '@lumino/coreutils';

import { type Choices, choicesOfJob, type Job } from '../jobs/job';
import type { IJobs } from '../tokens';

/** Choices for one notebook, and the suggested files that were declined. */
export type RememberedChoices = { choices?: Choices; declined?: string[] };

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
    const declined = await this._loadDeclined(path);
    const toMemory = (job: Job | null | undefined): RememberedChoices => ({
      ...(job && { choices: choicesOfJob(job) }),
      declined
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

  /** Save the declined files. Never fails: a lost memory must not disturb a submission. */
  async save(path: string, declined: string[]): Promise<void> {
    const entries = await this._loadEntries();
    const others = entries.filter(([notebook]) => notebook !== path);
    const added: MemoryEntry[] =
      declined.length > 0 ? [[path, { declined }]] : [];
    this._entries = [...added, ...others].slice(0, MAX_NOTEBOOKS);
    const value = this._entries as unknown as ReadonlyPartialJSONValue;
    await this._state?.save(KEY, value).catch(error => {
      console.warn('jupyter-to-job: the choices were not remembered', error);
    });
  }

  private async _loadDeclined(path: string): Promise<string[]> {
    const entries = await this._loadEntries();
    return entries.find(([notebook]) => notebook === path)?.[1].declined ?? [];
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

type MemoryEntry = [path: string, remembered: { declined?: string[] }];

/** Whether a stored entry has our format: another version may have written it. */
function isEntry(entry: unknown): entry is MemoryEntry {
  return (
    Array.isArray(entry) &&
    typeof entry[0] === 'string' &&
    typeof entry[1] === 'object' &&
    entry[1] !== null
  );
}
