/** The section of environment variables. Their values are hidden unless the user shows them. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { type ReactElement, useId, useRef, useState } from 'react';

import type { NameFault, Variable } from './environment';
import type { ModelProps } from './section';
import { Section } from './section';

export function EnvironmentSection({ model }: ModelProps): ReactElement {
  const { environment, trans } = model;
  const { variables } = environment;
  const addButton = useRef<HTMLButtonElement>(null);
  const initialIds = useRef(new Set(variables.map(({ id }) => id)));
  const remove = (id: number) => {
    model.change(() => environment.remove(id));
    addButton.current?.focus();
  };
  return (
    <Section
      label={
        variables.length === 0
          ? trans.__('Environment variables')
          : trans.__('Environment variables (%1)', variables.length)
      }
    >
      {variables.length > 0 && (
        <ul
          className="jp-ToJobDialog-list"
          aria-label={trans.__('Environment variables')}
        >
          {variables.map(variable => (
            <VariableRow
              key={variable.id}
              model={model}
              variable={variable}
              isNew={!initialIds.current.has(variable.id)}
              onRemove={() => remove(variable.id)}
            />
          ))}
        </ul>
      )}
      <button
        ref={addButton}
        className="jp-mod-styled jp-ToJobDialog-addVariable"
        onClick={() => model.change(() => environment.add())}
      >
        {trans.__('Add a Variable')}
      </button>
      <p className="jp-ToJobDialog-help">
        {trans.__(
          'The job gets them, and no page shows them again. Names are remembered, values are not.'
        )}
      </p>
    </Section>
  );
}

type VariableProps = ModelProps & { variable: Readonly<Variable> };

type RowProps = VariableProps & { isNew: boolean; onRemove: () => void };

function VariableRow(props: RowProps): ReactElement {
  const { model, variable, isNew, onRemove } = props;
  const { environment, trans } = model;
  const { id, name } = variable;
  const fault = environment.faultOf(variable);
  const key = useId();
  return (
    <li className="jp-ToJobDialog-variable">
      <input
        className="jp-mod-styled"
        type="text"
        aria-label={trans.__('Name of the variable')}
        aria-invalid={fault !== null || undefined}
        aria-describedby={fault !== null ? `${key}-fault` : undefined}
        placeholder={trans.__('NAME')}
        value={name}
        autoFocus={isNew}
        spellCheck={false}
        autoComplete="off"
        onChange={({ target }) =>
          model.change(() => environment.setName(id, target.value))
        }
      />
      <ValueField model={model} variable={variable} />
      <button
        className="jp-ToJobDialog-link"
        aria-label={trans.__('Remove %1', name)}
        onClick={onRemove}
      >
        {trans.__('Remove')}
      </button>
      {fault !== null && (
        <span id={`${key}-fault`} className="jp-ToJobDialog-wrong">
          {faultText(fault, trans)}
        </span>
      )}
    </li>
  );
}

function ValueField({ model, variable }: VariableProps): ReactElement {
  const { environment, trans } = model;
  const { id, name, value, isGiven } = variable;
  const [isShown, setIsShown] = useState(false);
  return (
    <>
      <input
        className="jp-mod-styled"
        type={isShown ? 'text' : 'password'}
        aria-label={trans.__('Value of %1', name)}
        placeholder={isGiven ? '' : trans.__('not set')}
        value={value}
        spellCheck={false}
        // Password managers leave such fields alone: the value is nothing to remember.
        autoComplete="one-time-code"
        onChange={({ target }) =>
          model.change(() => environment.setValue(id, target.value))
        }
      />
      <button
        className="jp-ToJobDialog-link"
        aria-pressed={isShown}
        aria-label={trans.__('Show the value of %1', name)}
        onClick={() => setIsShown(!isShown)}
      >
        {isShown ? trans.__('Hide') : trans.__('Show')}
      </button>
    </>
  );
}

function faultText(fault: NameFault, trans: TranslationBundle): string {
  return fault === 'missing'
    ? trans.__('A variable needs a name.')
    : trans.__('Another variable has this name.');
}
