/** The section of parameters, each with a control of its kind. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { type ReactElement, useRef } from 'react';

import type { ParameterField } from './parameters';
import { LINE_BREAK } from './parameterValues';
import type { ModelProps, TextFieldProps } from './section';
import { Checkbox, Section, TextArea, TextField } from './section';

export function ParametersSection({ model }: ModelProps): ReactElement {
  const { trans } = model;
  const { fields } = model.parameters;
  const hasBeenChanged = useRef(false);
  hasBeenChanged.current ||=
    fields?.some(({ isChanged }) => isChanged) ?? false;
  return (
    // What an earlier job chose must not be sent unseen.
    <Section
      label={sectionLabel(fields, trans)}
      isOpen={hasBeenChanged.current || undefined}
    >
      {fields?.map(field => (
        <ParameterControl key={field.name} field={field} model={model} />
      ))}
      <ResetAllButton model={model} />
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
  return (
    <div className="jp-ToJobDialog-parameter">
      <ParameterInput field={field} model={model} />
      <div className="jp-ToJobDialog-links">
        {model.source.submitSweep !== undefined && (
          <SeveralButton field={field} model={model} />
        )}
        {field.isChanged && <ResetButton field={field} model={model} />}
      </div>
    </div>
  );
}

function ParameterInput({ field, model }: ParameterProps): ReactElement {
  const { name, kind, text, error, isDeclared, isSeveral, source } = field;
  const { parameters, trans } = model;
  const help = isDeclared
    ? field.help
    : trans.__('The notebook does not declare it. It is set all the same.');
  const setText = (newText: string) =>
    model.change(() => parameters.setText(name, newText));
  const label = <code>{name}</code>;
  if (isSeveral) {
    return (
      <TextArea
        label={label}
        text={text}
        onType={setText}
        rows={['int', 'float', 'bool'].includes(kind) ? 1 : 3}
        help={severalHelp(field, trans)}
        error={error}
      />
    );
  }
  return kind === 'bool' ? (
    <Checkbox
      label={label}
      isChecked={text === 'true'}
      onToggle={isChecked => setText(String(isChecked))}
      help={help}
    />
  ) : (
    <SingleValue
      label={label}
      text={text}
      onType={setText}
      isNumeric={kind === 'int' || kind === 'float'}
      placeholder={source ?? undefined}
      help={help}
      error={error}
    />
  );
}

/**
 * The field of a single value. It has several lines once its text has a line break, which an
 * `<input>` would remove, and keeps them, and the focus, when the line break is deleted.
 */
function SingleValue(props: TextFieldProps): ReactElement {
  const hasLines = useRef(false);
  hasLines.current ||= LINE_BREAK.test(props.text);
  return hasLines.current ? (
    <TextArea {...props} rows={3} />
  ) : (
    <TextField {...props} />
  );
}

/** How many values there are, or how several of a kind are written. */
function severalHelp(
  { kind, count }: ParameterField,
  trans: TranslationBundle
): string {
  if (count > 1) {
    return trans._n(
      '%1 value, a job for each',
      '%1 values, a job for each',
      count
    );
  }
  switch (kind) {
    case 'int':
    case 'float':
      return trans.__('Numbers with commas between them: a job for each.');
    case 'bool':
      return trans.__('true, false: a job for each.');
    case 'json':
      return trans.__('JSON, a value on each line: a job for each.');
    default:
      return trans.__('A value on each line: a job for each.');
  }
}

function SeveralButton({ field, model }: ParameterProps): ReactElement {
  const { name, isSeveral } = field;
  const { parameters, trans } = model;
  return (
    <button
      className="jp-ToJobDialog-link"
      aria-label={
        isSeveral
          ? trans.__('One value for %1', name)
          : trans.__('Several values for %1', name)
      }
      onClick={() =>
        model.change(() => parameters.setSeveral(name, !isSeveral))
      }
    >
      {isSeveral ? trans.__('One value') : trans.__('Several values')}
    </button>
  );
}

/** Takes back all that an earlier job or the user changed. One field has its own button. */
function ResetAllButton({ model }: ModelProps): ReactElement | null {
  const { parameters, trans } = model;
  const changed = parameters.fields?.filter(({ isChanged }) => isChanged) ?? [];
  return changed.length < 2 ? null : (
    <button
      className="jp-ToJobDialog-link"
      onClick={() =>
        model.change(() =>
          changed.forEach(({ name }) => parameters.reset(name))
        )
      }
    >
      {trans.__('Use the Notebook’s Values')}
    </button>
  );
}

function ResetButton({ field, model }: ParameterProps): ReactElement {
  const { name, isDeclared } = field;
  const { parameters, trans } = model;
  return (
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
  );
}
