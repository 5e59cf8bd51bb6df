/** The input files: chosen by the user, or suggested because the notebook names them. */
import type { SuggestedInput } from '../api';
import type { Choices } from '../jobs/job';
import type { MergedPreflight } from './preflightQuery';

export class FileList {
  constructor({ inputs, isolated }: Choices, declinedPaths: string[] = []) {
    this._userPaths = [...(inputs ?? [])];
    this._declinedPaths = new Set(declinedPaths);
    this.isIsolated = isolated ?? false;
  }

  /** Whether the user wants the run in a scratch copy. */
  isIsolated: boolean;

  /**
   * Whether the run sees only the input files, because the user or the backend isolates it; in a
   * sweep at one of its places at least.
   */
  get isRunIsolated(): boolean {
    return this.isIsolated || this._isBackendIsolated;
  }

  /** Whether a sweep is isolated at some of its places, but not at all of them. */
  get isPartlyIsolated(): boolean {
    return this._isPartlyIsolated && !this.isIsolated;
  }

  /** Files that the notebook seems to need, as preflight says. */
  suggestions: readonly SuggestedInput[] = [];

  /** Paths that the user added, except suggestions. */
  get userPaths(): string[] {
    const suggested = new Set(this.suggestions.map(({ path }) => path));
    return this._userPaths.filter(path => !suggested.has(path));
  }

  get declinedPaths(): string[] {
    return [...this._declinedPaths];
  }

  /** All inputs to send: paths, folders and globs. */
  get paths(): string[] {
    const accepted = this.suggestions.filter(({ path }) => this.includes(path));
    return [...accepted.map(({ path }) => path), ...this.userPaths];
  }

  /** Whether a suggested path is sent. In an isolated run it is unless declined. */
  includes(path: string): boolean {
    return (
      this._userPaths.includes(path) ||
      (this.isRunIsolated && !this._declinedPaths.has(path))
    );
  }

  /** Accept or decline a suggested path. */
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

  remove(path: string): void {
    this._userPaths = this._userPaths.filter(each => each !== path);
  }

  /** Take the suggestions of a preflight answer. */
  onPreflight(answer: MergedPreflight): void {
    const { suggested, isolated, isIsolatedEverywhere } = answer;
    this.suggestions = suggested ?? []; // older servers send none
    this._isBackendIsolated = isolated && !this.isIsolated;
    this._isPartlyIsolated = isolated && !isIsolatedEverywhere;
  }

  private _userPaths: string[];
  private readonly _declinedPaths: Set<string>;
  private _isBackendIsolated = false;
  private _isPartlyIsolated = false;
}
