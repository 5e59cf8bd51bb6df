/** Saves a file that the page has, as a download of the browser. */
import type { TranslationBundle } from '@jupyterlab/translation';

import { showToast } from './toast';

/** How long the browser may take to begin, in milliseconds. */
const REVOKE_MS = 60_000;

/** Save a file under a name, as if a link to it had been followed, and say so. */
export function saveFile(
  file: Blob,
  name: string,
  trans: TranslationBundle
): void {
  const address = URL.createObjectURL(file);
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.hidden = true;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), REVOKE_MS);
  const text = trans.__('%1 was downloaded.', name);
  showToast({ type: 'success', text }, trans);
}
