/** What is folded away, and the labelled controls in it. */
import { type ReactElement, type ReactNode, useId } from 'react';

/** A part of the form that opens on demand; its label says what is in it. */
export function Section(props: {
  sectionLabel: string;
  children: ReactNode;
}): ReactElement {
  return (
    <details className="jp-ToJobDialog-section">
      <summary>{props.sectionLabel}</summary>
      <div className="jp-ToJobDialog-rows">{props.children}</div>
    </details>
  );
}

type TextFieldProps = {
  label: ReactNode;
  text: string;
  onType: (text: string) => void;
  help?: string | null;
  error?: string | null;
  placeholder?: string;
  isNumeric?: boolean;
};

/** A line of text with its label, help, and what is wrong with it. */
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

/** A box to tick, with its label and help. */
export function Checkbox(props: {
  label: ReactNode;
  isChecked: boolean;
  onToggle: (isTicked: boolean) => void;
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
