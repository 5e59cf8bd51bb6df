/**
 * The submit commands and their arguments, which have the same names as the fields of the request.
 */
import { SemanticCommand } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type {
  ReadonlyJSONObject,
  ReadonlyPartialJSONObject
} from '@lumino/coreutils';

import type { Choices } from '../jobs/job';

/** The command that submits a notebook and resolves to its job, or to null. */
export const SUBMIT = 'jupyter-to-job:submit';

/** The command that submits the notebook selected in the file browser, as it is on disk. */
export const SUBMIT_FILE = 'jupyter-to-job:submit-file';

const CHOICE_SCHEMAS: Record<keyof Choices, ReadonlyJSONObject> = {
  flavor: { type: 'string' },
  device: { type: 'string' },
  parameters: { type: 'object' },
  inputs: { type: 'array', items: { type: 'string' } },
  isolated: { type: 'boolean' },
  env: { type: 'object', additionalProperties: { type: 'string' } },
  max_runtime: { type: ['integer', 'string'] },
  output: { type: 'string' },
  name: { type: 'string' },
  priority: { type: 'integer', minimum: -100, maximum: 100 }
};

/** The arguments of the submit command as a JSON schema. */
export function describeSubmitArguments(
  trans: TranslationBundle
): ReadonlyJSONObject {
  const describe = (type: string, description: string) => ({
    type,
    description
  });
  return {
    type: 'object',
    properties: {
      [SemanticCommand.WIDGET]: describe(
        'string',
        trans.__('The id of the notebook panel; the current one if left out')
      ),
      path: describe(
        'string',
        trans.__('Instead of a panel: the path of a notebook, sent as on disk')
      ),
      current: describe(
        'string',
        trans.__(
          'Instead of a panel: the path of a notebook, saved first if it is open'
        )
      ),
      ask: describe(
        'boolean',
        trans.__(
          'Whether to ask in the dialog: true with the choices given filled in, false with the last choices; if left out only where no choice is given'
        )
      ),
      ...CHOICE_SCHEMAS
    },
    additionalProperties: true
  };
}

export function parseChoices(args: ReadonlyPartialJSONObject): Choices {
  const entries = Object.entries(args).filter(
    ([name, value]) =>
      name in CHOICE_SCHEMAS && value !== undefined && value !== null
  );
  return Object.fromEntries(entries);
}
