/**
 * Remembers the choices for each notebook, so that it can be submitted again with two keystrokes.
 */
import type { IStateDB } from '@jupyterlab/statedb';
import type { ReadonlyPartialJSONValue } from '@lumino/coreutils';

import type { Choices } from '../jobs/job';

/** Choices for one notebook, and the suggested files that were declined. */
export type RememberedChoices = { choices?: Choices; declined?: string[] };

const KEY = 'jupyter-to-job:choices';

/** How many notebooks are remembered. The one submitted longest ago is dropped first. */
const MAX_NOTEBOOKS = 50;

/** Stores choices in JupyterLab's state database; without one, until the page is closed. */
export class ChoiceMemory {
  constructor(private readonly _state: IStateDB | null) {}

  async load(path: string): Promise<RememberedChoices> {
    const entries = await this._loadEntries();
    return entries.find(([notebook]) => notebook === path)?.[1] ?? {};
  }

  /** Save the choices for a notebook. Never fails: a lost memory must not disturb a submission. */
  async save(path: string, choices: RememberedChoices): Promise<void> {
    const entries = await this._loadEntries();
    const otherEntries = entries.filter(([notebook]) => notebook !== path);
    this._entries = [[path, choices] as MemoryEntry, ...otherEntries].slice(
      0,
      MAX_NOTEBOOKS
    );
    const value = this._entries as unknown as ReadonlyPartialJSONValue;
    await this._state?.save(KEY, value).catch(error => {
      console.warn('jupyter-to-job: the choices were not remembered', error);
    });
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

type MemoryEntry = [path: string, remembered: RememberedChoices];

/** Whether a stored entry has our format: another version may have written it. */
function isEntry(entry: unknown): entry is MemoryEntry {
  return (
    Array.isArray(entry) &&
    typeof entry[0] === 'string' &&
    typeof entry[1] === 'object' &&
    entry[1] !== null
  );
}
