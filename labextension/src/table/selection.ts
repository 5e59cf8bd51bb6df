/** The selected jobs of the table, by name. A range begins at the row that was chosen last. */

export class Selection {
  get size(): number {
    return this._names.size;
  }

  has(name: string): boolean {
    return this._names.has(name);
  }

  /** Select one job only. */
  replace(name: string): void {
    this._names = new Set([name]);
    this._anchor = name;
  }

  toggle(name: string): void {
    if (!this._names.delete(name)) {
      this._names.add(name);
    }
    this._anchor = name;
  }

  /** Select the rows from the one that was chosen last to this one, and no others. */
  extend(name: string, rows: readonly string[]): void {
    const to = rows.indexOf(name);
    const anchor = rows.indexOf(this._anchor);
    const from = anchor === -1 ? to : anchor;
    const range = rows.slice(Math.min(from, to), Math.max(from, to) + 1);
    this._names = new Set(range);
    this._anchor = rows[from] ?? name;
  }

  selectAll(rows: readonly string[]): void {
    this._names = new Set(rows);
  }

  clear(): void {
    this._names.clear();
  }

  /** Forget what is not shown any more, so that nothing is done to a job that nobody sees. */
  retain(rows: ReadonlySet<string>): void {
    for (const name of this._names) {
      if (!rows.has(name)) {
        this._names.delete(name);
      }
    }
  }

  private _names = new Set<string>();
  private _anchor = '';
}
