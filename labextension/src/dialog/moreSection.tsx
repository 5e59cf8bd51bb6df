/** What is seldom asked for: time limit, name, where the result goes, priority. */
import { PathExt } from '@jupyterlab/coreutils';
import type { ReactElement } from 'react';

import { duration } from '../ui/format';
import type { Texts } from './model';
import { Line, Section } from './section';
import type { Shown } from './shown';

/** The rest of what may be chosen, folded away. */
export function More({ model }: Shown): ReactElement {
  const { trans, texts } = model;
  const count = Object.values(texts).filter(text => text.trim()).length;
  const line = (field: keyof Texts) => ({
    text: texts[field],
    onType: (text: string) => model.type(field, text)
  });
  return (
    <Section
      label={
        count === 0
          ? trans.__('Time limit, name, result')
          : trans.__('Time limit, name, result (%1 set)', count)
      }
    >
      <TimeLimit model={model} />
      <Line
        label={trans.__('Name')}
        placeholder={PathExt.basename(model.source.path, '.ipynb')}
        help={trans.__(
          'The job’s name begins with it, and so does the result’s.'
        )}
        {...line('name')}
      />
      <Line
        label={trans.__('Where the result goes')}
        placeholder={PathExt.dirname(model.source.path) || '/'}
        help={trans.__(
          'A folder that is there, or a new file. Nothing is overwritten.'
        )}
        {...line('output')}
      />
      {model.hasLine && (
        <Line
          label={trans.__('Priority')}
          placeholder="0"
          numeric
          help={trans.__(
            'From -100 to 100: higher goes first among your waiting jobs.'
          )}
          {...line('priority')}
        />
      )}
    </Section>
  );
}

function TimeLimit({ model }: Shown): ReactElement {
  const { catalog, flavor, trans, texts } = model;
  const most = catalog?.flavors[flavor ?? '']?.max_runtime ?? null;
  return (
    <Line
      label={trans.__('Time limit')}
      text={texts.maxRuntime}
      onType={text => model.type('maxRuntime', text)}
      placeholder="45m"
      help={
        most === null
          ? trans.__('Such as 90s, 45m, 1h30m or 1d.')
          : trans.__(
              'Such as 90s, 45m or 1h30m. The flavor allows %1.',
              duration(most, trans)
            )
      }
    />
  );
}
