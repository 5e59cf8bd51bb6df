/** The files that go along: chosen by the user, or suggested because the notebook names them. */
import type { Preflight, SuggestedInput } from '../api';
import type { Choices } from '../jobs/job';

/** What was chosen, and what the server said about it. */
export class FileList {
  constructor({ inputs, isolated }: Choices, declined: string[] = []) {
    this._added = [...(inputs ?? [])];
    this._declined = new Set(declined);
    this._isolated = isolated ?? false;
  }

  /** Whether the run gets a scratch copy of the files, by the user's will. */
  get isolated(): boolean {
    return this._isolated;
  }

  set isolated(isolated: boolean) {
    this._isolated = isolated;
  }

  /** Whether the run sees only what is sent along, by anybody's will. */
  get isNeeded(): boolean {
    return this._isolated || this._backendIsolates;
  }

  /** What the notebook seems to need. */
  get suggested(): readonly SuggestedInput[] {
    return this._suggested;
  }

  /** What the user added, without what is among the suggestions. */
  get added(): string[] {
    const paths = new Set(this._suggested.map(({ path }) => path));
    return this._added.filter(path => !paths.has(path));
  }

  /** Suggestions that the user turned down. */
  get declined(): string[] {
    return [...this._declined];
  }

  /** All that will be sent along, as paths, folders and globs. */
  get chosen(): string[] {
    const taken = this._suggested.filter(({ path }) => this.takes(path));
    return [...taken.map(({ path }) => path), ...this.added];
  }

  /** Whether a suggestion is followed: where the run would miss it, it is unless turned down. */
  takes(path: string): boolean {
    return (
      this._added.includes(path) || (this.isNeeded && !this._declined.has(path))
    );
  }

  /** Follow a suggestion, or turn it down. */
  take(path: string, wanted: boolean): void {
    if (wanted) {
      this._declined.delete(path);
      this.add(path);
    } else {
      this._declined.add(path);
      this.remove(path);
    }
  }

  /** Add a path, folder or glob. */
  add(path: string): void {
    const tidy = path.trim().replace(/^\/+/, '');
    if (tidy !== '' && !this._added.includes(tidy)) {
      this._added.push(tidy);
    }
  }

  /** Take away what was added. */
  remove(path: string): void {
    this._added = this._added.filter(each => each !== path);
  }

  /** Take note of what the server found. */
  suggest({ suggested, isolated }: Preflight): void {
    this._suggested = suggested ?? []; // a server part before this one says nothing
    this._backendIsolates = isolated && !this._isolated;
  }

  private _added: string[];
  private readonly _declined: Set<string>;
  private _isolated: boolean;
  private _backendIsolates = false;
  private _suggested: readonly SuggestedInput[] = [];
}
