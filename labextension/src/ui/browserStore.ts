/**
 * Keeps values in the browser's storage, because JupyterLab's own state belongs to one workspace,
 * and Notebook 7 keeps none.
 */
import { PageConfig } from '@jupyterlab/coreutils';

/** Distinguishes the servers that have or had this origin, which may have other jobs. */
export function serverScope(baseUrl: string): string {
  return `${baseUrl}:${PageConfig.getOption('jupyterToJobWorkspace')}`;
}

/** Keeps one value for all pages of a server in this browser. */
export class BrowserStore {
  /** @param scope as `serverScope` has it */
  constructor(name: string, scope: string) {
    this._key = `jupyter-to-job:${name}:${scope}`;
  }

  /** What was saved last, by whichever page; null if nothing was, or the storage is forbidden. */
  load(): unknown {
    try {
      return JSON.parse(window.localStorage.getItem(this._key) ?? 'null');
    } catch {
      return null;
    }
  }

  /** Save a value; false if the storage is full or forbidden. */
  save(value: unknown): boolean {
    try {
      window.localStorage.setItem(this._key, JSON.stringify(value));
      return true;
    } catch {
      return false;
    }
  }

  private readonly _key: string;
}
