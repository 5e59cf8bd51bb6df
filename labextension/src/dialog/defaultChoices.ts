/** The choices that the user's settings add to those of a notebook's newest job. */
import { PathExt } from '@jupyterlab/coreutils';

import type { Preferences } from '../settings/preferences';
import type { RememberedChoices } from './memory';

/**
 * Fill in what a notebook's newest job does not say: flavor and device where there is no job, and
 * the folder of results where it went beside its source.
 */
export function withDefaults(
  remembered: RememberedChoices,
  notebook: string,
  { flavor, device, resultsFolder }: Preferences
): RememberedChoices {
  const hasJob = remembered.choices !== undefined;
  const output = resultsPath(resultsFolder, notebook);
  return {
    ...remembered,
    choices: {
      ...(!hasJob && flavor && { flavor }),
      ...(!hasJob && device && { device }),
      ...(output && { output }),
      ...remembered.choices
    }
  };
}

/**
 * The folder of a notebook's results, from the top of the file browser and with a slash at its end;
 * empty if the setting is.
 */
export function resultsPath(pattern: string, notebook: string): string {
  const text = pattern.trim();
  if (text === '') {
    return '';
  }
  const name = PathExt.basename(notebook, PathExt.extname(notebook));
  const filled = text.replaceAll('{notebook}', () => name);
  const path = filled.startsWith('/')
    ? filled
    : PathExt.join(PathExt.dirname(notebook), filled);
  const folder = path.replace(/^[./]+$|^\/+|\/+$/g, '');
  return folder && `${folder}/`;
}
