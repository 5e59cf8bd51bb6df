/** Collapsible sections and labelled controls of the form. */
import { type ReactElement, type ReactNode, useId } from 'react';

import type { SubmitModel } from './model';

export type ModelProps = { model: SubmitModel };

export function Section(props: {
  label: string;
  isOpen?: boolean;
  children: ReactNode;
}): ReactElement {
  return (
    <details className="jp-ToJobDialog-section" open={props.isOpen}>
      <summary>{props.label}</summary>
      <div className="jp-ToJobDialog-rows">{props.children}</div>
    </details>
  );
}

/** Choices that cannot be made here: they take no room until somebody wants to know. */
export function Folded(props: {
  label: string;
  isOpen?: boolean;
  children: ReactNode;
}): ReactElement {
  return (
    <details className="jp-ToJobDialog-folded" open={props.isOpen}>
      <summary>{props.label}</summary>
      {props.children}
    </details>
  );
}

export type TextFieldProps = {
  label: ReactNode;
  text: string;
  onType: (text: string) => void;
  help?: string | null;
  error?: string | null;
  placeholder?: string;
  isNumeric?: boolean;
};

export function TextField(props: TextFieldProps): ReactElement {
  const { label, text, onType, help, error, placeholder, isNumeric } = props;
  const id = useId();
  return (
    <div className="jp-ToJobDialog-row">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        className="jp-mod-styled"
        type="text"
        inputMode={isNumeric ? 'decimal' : undefined}
        value={text}
        placeholder={placeholder}
        spellCheck={false}
        autoComplete="off"
        aria-invalid={error ? true : undefined}
        aria-describedby={help || error ? `${id}-help` : undefined}
        onChange={event => onType(event.target.value)}
      />
      <HelpText id={`${id}-help`} help={help} error={error} />
    </div>
  );
}

/** A field of several lines. */
export function TextArea(
  props: Omit<TextFieldProps, 'placeholder' | 'isNumeric'> & { rows: number }
): ReactElement {
  const { label, text, onType, help, error, rows } = props;
  const id = useId();
  return (
    <div className="jp-ToJobDialog-row">
      <label htmlFor={id}>{label}</label>
      <textarea
        id={id}
        className="jp-mod-styled"
        rows={rows}
        value={text}
        spellCheck={false}
        autoComplete="off"
        aria-invalid={error ? true : undefined}
        aria-describedby={help || error ? `${id}-help` : undefined}
        onChange={event => onType(event.target.value)}
      />
      <HelpText id={`${id}-help`} help={help} error={error} />
    </div>
  );
}

export function Checkbox(props: {
  label: ReactNode;
  isChecked: boolean;
  onToggle: (isChecked: boolean) => void;
  help?: string | null;
}): ReactElement {
  const { label, isChecked, onToggle, help } = props;
  const id = useId();
  return (
    <div className="jp-ToJobDialog-row jp-mod-tick">
      <label>
        <input
          type="checkbox"
          checked={isChecked}
          aria-describedby={help ? id : undefined}
          onChange={event => onToggle(event.target.checked)}
        />
        {label}
      </label>
      <HelpText id={id} help={help} />
    </div>
  );
}

function HelpText(props: {
  id: string;
  help?: string | null;
  error?: string | null;
}): ReactElement | null {
  const { id, help, error } = props;
  return !help && !error ? null : (
    <span id={id}>
      {error && <span className="jp-ToJobDialog-wrong">{error}</span>}
      {help && <span className="jp-ToJobDialog-help">{help}</span>}
    </span>
  );
}
