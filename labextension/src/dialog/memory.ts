/**
 * What was chosen for each notebook the last time: enough to submit again with two keystrokes, and
 * no more notebooks than somebody works with.
 */
import type { IStateDB } from '@jupyterlab/statedb';
import type { ReadonlyPartialJSONValue } from '@lumino/coreutils';

import type { Choices } from '../jobs/job';

/** Choices of one notebook, and the suggested files that were turned down. */
export type Remembered = { choices?: Choices; declined?: string[] };

const KEY = 'jupyter-to-job:choices';

/** How many notebooks are remembered; the one submitted longest ago is forgotten first. */
const NOTEBOOKS = 50;

/** Remembers in JupyterLab's own state, and for this page only where there is none. */
export class Memory {
  constructor(private readonly _state: IStateDB | null) {}

  /** What was chosen for this notebook the last time. */
  async recall(path: string): Promise<Remembered> {
    const known = await this._load();
    return known.find(([notebook]) => notebook === path)?.[1] ?? {};
  }

  /** Keep what was chosen. Never fails: a memory is no reason to disturb anyone. */
  async keep(path: string, remembered: Remembered): Promise<void> {
    const known = await this._load();
    const others = known.filter(([notebook]) => notebook !== path);
    this._known = [[path, remembered] as Entry, ...others].slice(0, NOTEBOOKS);
    const value = this._known as unknown as ReadonlyPartialJSONValue;
    await this._state?.save(KEY, value).catch(error => {
      console.warn('jupyter-to-job: the choices were not remembered', error);
    });
  }

  /** What is known, read once: nobody else writes it while this page lives. */
  private async _load(): Promise<Entry[]> {
    if (this._known === null) {
      const stored: unknown = await this._state?.fetch(KEY).catch(() => null);
      this._known = Array.isArray(stored) ? stored.filter(isEntry) : [];
    }
    return this._known;
  }

  private _known: Entry[] | null = null;
}

type Entry = [path: string, remembered: Remembered];

/** Whether what was stored is ours: another version may have written something else. */
function isEntry(entry: unknown): entry is Entry {
  return (
    Array.isArray(entry) &&
    typeof entry[0] === 'string' &&
    typeof entry[1] === 'object' &&
    entry[1] !== null
  );
}
