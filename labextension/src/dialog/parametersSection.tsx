/** The section of parameters, each with a control of its kind. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReactElement } from 'react';

import type { ParameterField } from './parameters';
import type { ModelProps } from './section';
import { Checkbox, Section, TextField } from './section';

export function ParametersSection({ model }: ModelProps): ReactElement {
  const { trans } = model;
  const { fields } = model.parameters;
  return (
    <Section label={sectionLabel(fields, trans)}>
      {fields?.map(field => (
        <ParameterControl key={field.name} field={field} model={model} />
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

function sectionLabel(
  fields: ParameterField[] | null,
  trans: TranslationBundle
): string {
  if (fields === null) {
    return trans.__('Parameters');
  }
  const changedCount = fields.filter(field => field.isChanged).length;
  return changedCount === 0
    ? trans.__('Parameters (%1)', fields.length)
    : trans.__('Parameters (%1, %2 changed)', fields.length, changedCount);
}

type ParameterProps = ModelProps & { field: ParameterField };

function ParameterControl({ field, model }: ParameterProps): ReactElement {
  const { name, kind, text, error, isChanged, isDeclared, source } = field;
  const { parameters, trans } = model;
  const help = isDeclared
    ? field.help
    : trans.__('The notebook does not declare it. It is set all the same.');
  const setText = (newText: string) =>
    model.change(() => parameters.setText(name, newText));
  return (
    <div className="jp-ToJobDialog-parameter">
      {kind === 'bool' ? (
        <Checkbox
          label={<code>{name}</code>}
          isChecked={text === 'true'}
          onToggle={isChecked => setText(String(isChecked))}
          help={help}
        />
      ) : (
        <TextField
          label={<code>{name}</code>}
          text={text}
          onType={setText}
          isNumeric={kind === 'int' || kind === 'float'}
          placeholder={source ?? undefined}
          help={help}
          error={error}
        />
      )}
      {isChanged && (
        <button
          className="jp-ToJobDialog-link"
          onClick={() => model.change(() => parameters.reset(name))}
          aria-label={
            isDeclared
              ? trans.__('Reset %1 to the default', name)
              : trans.__('Remove %1', name)
          }
        >
          {isDeclared ? trans.__('Reset') : trans.__('Remove')}
        </button>
      )}
    </div>
  );
}
