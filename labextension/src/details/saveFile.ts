/** Lets the browser save what was fetched, as if a link to it had been followed. */

/** How long the browser may take to begin, in milliseconds. */
const REVOKE_MS = 60_000;

export function saveFile(content: Blob, name: string): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), REVOKE_MS);
}
