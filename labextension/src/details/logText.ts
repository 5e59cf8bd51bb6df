/** The end of a log as plain text. */
import { StreamText } from '../live/streamText';

/** The most characters that are shown. */
const MAX_CHARS = 64 << 10;

const ESCAPE = String.fromCharCode(27);
const ANSI_CODES = new RegExp(`${ESCAPE}\\[[0-9;?]*[ -/]*[@-~]`, 'g');

/** Remove codes of colors, and apply carriage returns and backspaces. */
export function plainLog(text: string): string {
  const stream = new StreamText(MAX_CHARS);
  stream.append(text.replace(ANSI_CODES, ''));
  return stream.text.slice(-MAX_CHARS);
}
