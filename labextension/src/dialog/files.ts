/** The files that go along: chosen by the user, or suggested because the notebook names them. */
import type { Preflight, SuggestedInput } from '../api';
import type { Choices } from '../jobs/job';

/** What was chosen, and what the server said about it. */
export class FileList {
  constructor(
    { inputs, isolated: isIsolated }: Choices,
    declinedPaths: string[] = []
  ) {
    this._userPaths = [...(inputs ?? [])];
    this._declinedPaths = new Set(declinedPaths);
    this._isIsolated = isIsolated ?? false;
  }

  /** Whether the run gets a scratch copy of the files, by the user's will. */
  get isolated(): boolean {
    return this._isIsolated;
  }

  set isolated(isolated: boolean) {
    this._isIsolated = isolated;
  }

  /** Whether the run sees only what is sent along, by anybody's will. */
  get isRunIsolated(): boolean {
    return this._isIsolated || this._isBackendIsolated;
  }

  /** What the notebook seems to need. */
  get suggestions(): readonly SuggestedInput[] {
    return this._suggestions;
  }

  /** What the user added, without what is among the suggestions. */
  get userPaths(): string[] {
    const paths = new Set(this._suggestions.map(({ path }) => path));
    return this._userPaths.filter(path => !paths.has(path));
  }

  /** Suggestions that the user turned down. */
  get declined(): string[] {
    return [...this._declinedPaths];
  }

  /** All that will be sent along, as paths, folders and globs. */
  get paths(): string[] {
    const accepted = this._suggestions.filter(({ path }) =>
      this.includes(path)
    );
    return [...accepted.map(({ path }) => path), ...this.userPaths];
  }

  /** Whether a suggestion is followed: where the run would miss it, it is unless turned down. */
  includes(path: string): boolean {
    return (
      this._userPaths.includes(path) ||
      (this.isRunIsolated && !this._declinedPaths.has(path))
    );
  }

  /** Follow a suggestion, or turn it down. */
  setIncluded(path: string, isIncluded: boolean): void {
    if (isIncluded) {
      this._declinedPaths.delete(path);
      this.add(path);
    } else {
      this._declinedPaths.add(path);
      this.remove(path);
    }
  }

  /** Add a path, folder or glob. */
  add(path: string): void {
    const relativePath = path.trim().replace(/^\/+/, '');
    if (relativePath !== '' && !this._userPaths.includes(relativePath)) {
      this._userPaths.push(relativePath);
    }
  }

  /** Take away what was added. */
  remove(path: string): void {
    this._userPaths = this._userPaths.filter(each => each !== path);
  }

  /** Take note of what the server found. */
  onPreflight({ suggested, isolated }: Preflight): void {
    this._suggestions = suggested ?? []; // a server part before this one says nothing
    this._isBackendIsolated = isolated && !this._isIsolated;
  }

  private _userPaths: string[];
  private readonly _declinedPaths: Set<string>;
  private _isIsolated: boolean;
  private _isBackendIsolated = false;
  private _suggestions: readonly SuggestedInput[] = [];
}
