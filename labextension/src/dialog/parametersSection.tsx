/** The notebook's parameters, each with the control of its kind. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReactElement } from 'react';

import type { Field } from './parameters';
import { Line, Section, Tick } from './section';
import type { Shown } from './shown';

/** The parameters that the notebook declares, folded away. */
export function Parameters({ model }: Shown): ReactElement {
  const { parameters, trans } = model;
  const { fields } = parameters;
  return (
    <Section label={label(fields, trans)}>
      {fields?.map(field => (
        <Parameter
          key={field.name}
          field={field}
          type={text => {
            model.change(() => parameters.type(field.name, text));
          }}
          reset={() => model.change(() => parameters.reset(field.name))}
          trans={trans}
        />
      ))}
      {fields?.length === 0 && (
        <p className="jp-ToJobDialog-help">
          {trans.__(
            'This notebook declares none. Give the cell that sets the defaults the tag “parameters” (Property Inspector, Cell Tags), and they show here.'
          )}
        </p>
      )}
      {fields === null && (
        <p className="jp-ToJobDialog-help">
          {trans.__('Reading the notebook…')}
        </p>
      )}
    </Section>
  );
}

function label(fields: Field[] | null, trans: TranslationBundle): string {
  if (fields === null) {
    return trans.__('Parameters');
  }
  const changed = fields.filter(field => field.changed).length;
  return changed === 0
    ? trans.__('Parameters (%1)', fields.length)
    : trans.__('Parameters (%1, %2 changed)', fields.length, changed);
}

type ParameterProps = {
  field: Field;
  type: (text: string) => void;
  reset: () => void;
  trans: TranslationBundle;
};

function Parameter({
  field,
  type,
  reset,
  trans
}: ParameterProps): ReactElement {
  const { name, kind, text, help, error, changed, source } = field;
  return (
    <div className="jp-ToJobDialog-parameter">
      {kind === 'bool' ? (
        <Tick
          label={<code>{name}</code>}
          isTicked={text === 'true'}
          onTick={isTicked => type(String(isTicked))}
          help={help}
        />
      ) : (
        <Line
          label={<code>{name}</code>}
          text={text}
          onType={type}
          numeric={kind === 'int' || kind === 'float'}
          placeholder={source ?? undefined}
          help={help}
          error={error}
        />
      )}
      {changed && (
        <button
          className="jp-ToJobDialog-link"
          onClick={reset}
          aria-label={trans.__('Reset %1 to the default', name)}
        >
          {trans.__('Reset')}
        </button>
      )}
    </div>
  );
}
