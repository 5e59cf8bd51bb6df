/** The section of less common choices: time limit, name, destination, priority. */
import { PathExt } from '@jupyterlab/coreutils';
import type { ReactElement } from 'react';

import { formatDuration } from '../ui/format';
import type { TextFields } from './formProblems';
import type { ModelProps } from './section';
import { Section, TextField } from './section';

export function MoreSection({ model }: ModelProps): ReactElement {
  const { source, trans, texts, preflight } = model;
  const count = Object.values(texts).filter(text => text.trim()).length;
  const fieldProps = (field: keyof TextFields) => ({
    text: texts[field],
    onType: (text: string) => model.setText(field, text)
  });
  return (
    <Section
      label={
        count === 0
          ? trans.__('Time limit, name, result')
          : trans.__('Time limit, name, result (%1 set)', count)
      }
    >
      <TimeLimitField model={model} />
      <TextField
        label={trans.__('Name')}
        placeholder={PathExt.basename(source.path, '.ipynb')}
        help={trans.__(
          'The job’s name begins with it, and so does the result’s.'
        )}
        {...fieldProps('name')}
      />
      <TextField
        label={trans.__('Where the result goes')}
        placeholder={
          preflight?.results ??
          source.resultsFolder ??
          (PathExt.dirname(source.path) || '/')
        }
        help={trans.__(
          'A folder such as results/, which is made if it is missing, or a new file. Nothing is overwritten.'
        )}
        {...fieldProps('output')}
      />
      {model.hasQueue && (
        <TextField
          label={trans.__('Priority')}
          placeholder="0"
          isNumeric
          help={trans.__(
            'From -100 to 100: higher goes first among your waiting jobs.'
          )}
          {...fieldProps('priority')}
        />
      )}
    </Section>
  );
}

function TimeLimitField({ model }: ModelProps): ReactElement {
  const { catalog, flavor, trans, texts } = model;
  const maxRuntime = catalog?.flavors[flavor ?? '']?.max_runtime ?? null;
  return (
    <TextField
      label={trans.__('Time limit')}
      text={texts.maxRuntime}
      onType={text => model.setText('maxRuntime', text)}
      placeholder="45m"
      help={
        maxRuntime === null
          ? trans.__('Such as 90s, 45m, 1h30m or 1d.')
          : trans.__(
              'Such as 90s, 45m or 1h30m. The flavor allows %1.',
              formatDuration(maxRuntime, trans)
            )
      }
    />
  );
}
