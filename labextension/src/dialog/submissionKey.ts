/** The key by which the server recognises a submission that is sent a second time. */
import { UUID } from '@lumino/coreutils';

/** The key of a submission whose choices are not known yet: there is nothing to withdraw. */
export const NO_KEY = '';

/** Gives the same request the same key, so that a repetition is safe, and another one a new key. */
export class SubmissionKey {
  of(request: unknown): string {
    const text = JSON.stringify(request);
    if (text !== this._last?.text) {
      this._last = { text, key: UUID.uuid4() };
    }
    return this._last.key;
  }

  /** Never give this key again: the server refuses a withdrawn one from now on. */
  discard(): void {
    this._last = null;
  }

  private _last: { text: string; key: string } | null = null;
}
