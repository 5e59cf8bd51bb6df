/**
 * What was chosen for each notebook the last time: enough to submit again with two keystrokes, and
 * no more notebooks than somebody works with.
 */
import type { IStateDB } from '@jupyterlab/statedb';
import type { ReadonlyPartialJSONValue } from '@lumino/coreutils';

import type { Choices } from '../jobs/job';

/** Choices of one notebook, and the suggested files that were turned down. */
export type RememberedChoices = { choices?: Choices; declined?: string[] };

const KEY = 'jupyter-to-job:choices';

/** How many notebooks are remembered; the one submitted longest ago is forgotten first. */
const MAX_NOTEBOOKS = 50;

/** Remembers in JupyterLab's own state, and for this page only where there is none. */
export class ChoiceMemory {
  constructor(private readonly _state: IStateDB | null) {}

  /** What was chosen for this notebook the last time. */
  async load(path: string): Promise<RememberedChoices> {
    const entries = await this._loadEntries();
    return entries.find(([notebook]) => notebook === path)?.[1] ?? {};
  }

  /** Keep what was chosen. Never fails: a memory is no reason to disturb anyone. */
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

  /** What is known, read once: nobody else writes it while this page lives. */
  private async _loadEntries(): Promise<MemoryEntry[]> {
    if (this._entries === null) {
      const stored: unknown = await this._state?.fetch(KEY).catch(() => null);
      this._entries = Array.isArray(stored) ? stored.filter(isEntry) : [];
    }
    return this._entries;
  }

  private _entries: MemoryEntry[] | null = null;
}

type MemoryEntry = [path: string, remembered: RememberedChoices];

/** Whether what was stored is ours: another version may have written something else. */
function isEntry(entry: unknown): entry is MemoryEntry {
  return (
    Array.isArray(entry) &&
    typeof entry[0] === 'string' &&
    typeof entry[1] === 'object' &&
    entry[1] !== null
  );
}
