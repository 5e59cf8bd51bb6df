/** The model of Clean Up: which old results there are, and their removal. */
import { Signal } from '@lumino/signaling';

import type { OldResult } from '../api';
import type { Client } from '../jobs/client';

/** API calls of Clean Up. */
export type ICleanUpApi = Pick<Client, 'listOldResults' | 'removeResult'>;

/** How long ago jobs have to have ended, as the server reads it. */
export const AGES = ['1d', '7d', '30d', '90d'] as const;
export type Age = (typeof AGES)[number];

/** What became of several results. */
export type Outcome = {
  removed: number;
  size: number;
  changed: number;
  errors: unknown[];
};

export class CleanUpModel {
  constructor(private readonly _api: ICleanUpApi) {}

  readonly changed = new Signal<this, void>(this);

  /** Counts the changes. */
  version = 0;

  age: Age = '30d';

  /** Whether the newest result of each notebook stays. */
  keepsNewest = true;

  /** The results that would be removed, newest first; null while they are looked for. */
  results: OldResult[] | null = null;

  error: unknown = null;

  /** The bytes of the results. */
  get size(): number {
    return (this.results ?? []).reduce((all, { size }) => all + size, 0);
  }

  /** Change the choices, and look for the results again. */
  async set(
    choices: Partial<Pick<CleanUpModel, 'age' | 'keepsNewest'>>
  ): Promise<void> {
    Object.assign(this, choices);
    const request = (this._request += 1);
    this.results = null;
    this.error = null;
    this._emitChanged();
    let results: OldResult[] | null = null;
    let error: unknown = null;
    try {
      results = await this._api.listOldResults(
        this.age,
        this.keepsNewest ? 1 : 0
      );
    } catch (caught) {
      error = caught;
    }
    if (request === this._request) {
      this.results = results;
      this.error = error;
      this._emitChanged();
    }
  }

  /** Remove the results that are shown. */
  async remove(): Promise<Outcome> {
    const outcome: Outcome = { removed: 0, size: 0, changed: 0, errors: [] };
    for (const { job } of this.results ?? []) {
      try {
        const { removed, size, changed } = await this._api.removeResult(job);
        outcome.removed += removed.length > 0 ? 1 : 0;
        outcome.size += size;
        outcome.changed += changed.length > 0 ? 1 : 0;
      } catch (error) {
        outcome.errors.push(error);
      }
    }
    return outcome;
  }

  private _emitChanged(): void {
    this.version += 1;
    this.changed.emit();
  }

  /** The number of the latest request: an answer to an earlier one is dropped. */
  private _request = 0;
}
