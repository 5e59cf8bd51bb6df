/**
 * The model of the parameter fields. Unchanged parameters are not sent, so that the notebook's own
 * defaults apply.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { JSONExt, type JSONValue } from '@lumino/coreutils';

import type { Parameter } from '../api';
import type { Axis } from '../jobs/sweep';
import { mayBeRounded } from '../ui/rounding';
import {
  errorText,
  type FieldKind,
  formatValue,
  LINE_BREAK,
  parseText,
  parseValues
} from './parameterValues';

/** A parameter as the form shows it. */
export type ParameterField = {
  name: string;
  kind: FieldKind;
  help: string | null;
  /** The default's source text, if it cannot be shown as a value. */
  source: string | null;
  /** The control's text; `'true'` or `'false'` for a checkbox. */
  text: string;
  isChanged: boolean;
  /** Whether the text is of several values, each of which makes jobs of its own. */
  isSeveral: boolean;
  /** How many values there are; 0 if one of them is invalid. */
  count: number;
  /** Whether the notebook declares it. What it does not declare is set before its first cell. */
  isDeclared: boolean;
  error: string | null;
};

export class ParameterForm {
  /**
   * @param initialValues values that differ from the defaults, for example those of the last
   * submission
   * @param earlierDefaults the defaults, as source text, that were known when the initial values
   * were chosen: a value is dropped if the notebook has another default now
   * @param staysExact whether the server has the initial values, and takes them where they are not
   * changed
   */
  constructor(
    private readonly _trans: TranslationBundle,
    initialValues: Record<string, JSONValue> = {},
    earlierDefaults: Record<string, string> = {},
    private readonly _staysExact = false
  ) {
    this._earlierDefaults = { ...earlierDefaults };
    this._changes = new Map(
      Object.entries(initialValues).map(([name, value]) => [name, { value }])
    );
  }

  /**
   * The fields in the notebook's order, then those that it does not declare; null until preflight
   * has read the notebook.
   */
  get fields(): ParameterField[] | null {
    if (this._parameters === null) {
      return null;
    }
    const declared = new Set(this._parameters.map(({ name }) => name));
    const others = [
      ...new Set([...this._changes.keys(), ...this._several.keys()])
    ].filter(name => !declared.has(name));
    return [
      ...this._parameters.map(each => this._toField(each, true)),
      ...others.map(name => this._toField(undeclared(name), false))
    ];
  }

  /** The values to send: only those that differ from the defaults, and are the same in all jobs. */
  get values(): Record<string, JSONValue> {
    const single = [...this._changes].filter(
      ([name]) => !this._several.has(name)
    );
    const alone = [...this._several].filter(
      ([, { values }]) => values?.length === 1
    );
    return Object.fromEntries([
      ...single.flatMap(([name, change]) =>
        this._isInvalid(name, change) ? [] : [[name, change.value!] as const]
      ),
      ...alone.map(([name, { values }]) => [name, values![0]!] as const)
    ]);
  }

  /** The parameters that have several values, in the order in which they were made to. */
  get axes(): Axis[] {
    return [...this._several].flatMap(([name, { values }]) =>
      values === undefined || values.length < 2
        ? []
        : [{ name, runs: values.map(v => ({ parameters: { [name]: v } })) }]
    );
  }

  get hasErrors(): boolean {
    return (
      [...this._changes].some(
        ([name, change]) =>
          !this._several.has(name) && this._isInvalid(name, change)
      ) ||
      [...this._several.values()].some(({ values }) => values === undefined)
    );
  }

  /** Whether values are dropped if the notebook turns out to have other defaults now. */
  get awaitsDefaults(): boolean {
    return (
      this._parameters === null &&
      Object.keys(this._earlierDefaults).some(name => this._changes.has(name))
    );
  }

  /** The defaults, as source text, of the parameters whose values are sent. */
  get changedDefaults(): Record<string, string> {
    const { values } = this;
    return Object.fromEntries(
      (this._parameters ?? []).flatMap(({ name, default: source }) =>
        source !== null && name in values ? [[name, source]] : []
      )
    );
  }

  /** Set the parameters that the notebook declares. */
  setParameters(parameters: readonly Parameter[]): void {
    for (const parameter of parameters) {
      if (hasNewDefault(parameter, this._earlierDefaults)) {
        this._changes.delete(parameter.name);
      }
      delete this._earlierDefaults[parameter.name]; // the user sees what is chosen
    }
    this._parameters = parameters;
  }

  /** Let a parameter have several values, or a single one again: the first of them. */
  setSeveral(name: string, isSeveral: boolean): void {
    const field = this.fields?.find(each => each.name === name);
    if (field === undefined || field.isSeveral === isSeveral) {
      return;
    }
    if (isSeveral) {
      // The lines of a single value are not several values.
      const oneLine = LINE_BREAK.test(field.text) ? '' : field.text;
      const text = field.kind === 'bool' ? 'true, false' : oneLine;
      this._several.set(name, { text, values: parseValues(text, field.kind) });
    } else {
      const [first] = this._several.get(name)?.values ?? [];
      this._several.delete(name);
      if (first !== undefined) {
        this.setText(name, formatValue(first, field.kind));
      }
    }
  }

  setText(name: string, text: string): void {
    delete this._earlierDefaults[name];
    const declared = this._declared(name);
    const parameter = declared ?? undeclared(name);
    if (this._several.has(name)) {
      const values = parseValues(text, kindOf(parameter));
      this._several.set(name, { text, values });
      return;
    }
    if (declared === undefined) {
      if (!this._changes.has(name)) {
        return;
      }
    } else {
      this.reset(name);
      if (text === '' && defaultOf(declared) === undefined) {
        return; // An empty field keeps a default that cannot be shown.
      }
    }
    const value = parseText(text, kindOf(parameter));
    if (value === undefined || !isDefault(value, parameter)) {
      this._changes.set(name, { value, text });
    }
  }

  /** Reset a field to the notebook's default, or remove it if the notebook does not declare it. */
  reset(name: string): void {
    this._changes.delete(name);
    this._several.delete(name);
  }

  private _toField(parameter: Parameter, isDeclared: boolean): ParameterField {
    const { name, help } = parameter;
    const kind = kindOf(parameter);
    const several = this._several.get(name);
    const change = several === undefined ? this._changes.get(name) : undefined;
    const defaultValue = defaultOf(parameter);
    const defaultText =
      typeof defaultValue === 'number' ? parameter.default?.trim() : undefined;
    const text =
      several?.text ??
      (change === undefined ? defaultText : change.text) ??
      formatValue(change === undefined ? defaultValue : change.value, kind);
    return {
      name,
      kind,
      help,
      source: defaultValue === undefined ? parameter.default : null,
      text,
      isChanged: change !== undefined || several !== undefined,
      isSeveral: several !== undefined,
      count: several === undefined ? 1 : (several.values?.length ?? 0),
      isDeclared,
      error:
        (change && this._isInvalid(name, change)) ||
        (several && !several.values)
          ? errorText(kind, text, this._trans)
          : null
    };
  }

  /** Whether a change cannot be sent: its text is invalid, or the browser may have rounded it. */
  private _isInvalid(name: string, { value, text }: Change): boolean {
    if (value === undefined) {
      return true;
    }
    const isTyped = text !== undefined;
    return (
      !isTyped &&
      !this._staysExact &&
      mayBeRounded(value) &&
      !isFloat(this._declared(name) ?? undeclared(name))
    );
  }

  private _declared(name: string): Parameter | undefined {
    return this._parameters?.find(each => each.name === name);
  }

  private _parameters: readonly Parameter[] | null = null;
  private readonly _earlierDefaults: Record<string, string>;
  private readonly _changes: Map<string, Change>;
  private readonly _several = new Map<string, Several>();
}

/** Whether a parameter has another default than it had earlier, if that is known. */
export function hasNewDefault(
  { name, default: source }: Parameter,
  earlierDefaults: Record<string, string>
): boolean {
  return name in earlierDefaults && earlierDefaults[name] !== source;
}

/** Several values as they were typed; undefined if one of them is invalid. */
type Several = { text: string; values: JSONValue[] | undefined };

/**
 * A value that differs from the default, undefined if its text is invalid. The text is kept as it
 * was typed: `1e3` must not become `1000` while the user types.
 */
type Change = { value: JSONValue | undefined; text?: string };

/** What is known of a parameter that the notebook does not declare. */
function undeclared(name: string): Parameter {
  return { name, type: null, default: null, value: null, help: null };
}

const TYPE_HINTS: [RegExp, FieldKind][] = [
  [/^bool/i, 'bool'],
  [/^int/i, 'int'],
  [/^(float|double|number)/i, 'float'],
  [/^(str|string|character)/i, 'text'],
  [/^(list|dict|tuple|array|vector|map)/i, 'json']
];

/** The kind of a parameter, by its default and by the type that the notebook declares. */
function kindOf(parameter: Parameter): FieldKind {
  const hint = TYPE_HINTS.find(([type]) =>
    type.test(parameter.type ?? '')
  )?.[1];
  const value = defaultOf(parameter);
  switch (typeof value) {
    case 'boolean':
      return 'bool';
    case 'number':
      // `rate = 1` may become 0.5: only a declared int means whole numbers.
      return hint === 'int' ? 'int' : 'float';
    case 'string':
      return 'text';
    case 'object':
      return 'json';
    default:
      // A checkbox cannot show a default that is an expression.
      return hint === undefined || hint === 'bool' ? 'any' : hint;
  }
}

/** Whether a notebook declares a float, or its default is written as one: `1.0` or `1e17`. */
export function isFloat(parameter: Parameter): boolean {
  return (
    /^(float|double)/i.test(parameter.type ?? '') ||
    (typeof defaultOf(parameter) === 'number' &&
      /^[+-]?[\d_]*(\.|\de)/i.test(parameter.default?.trim() ?? ''))
  );
}

/** The default as a value; undefined if it is no literal, or null, which has no type. */
function defaultOf({ value }: Parameter): JSONValue | undefined {
  return (value as JSONValue | undefined) ?? undefined;
}

function isDefault(value: JSONValue, parameter: Parameter): boolean {
  const defaultValue = defaultOf(parameter);
  return defaultValue !== undefined && JSONExt.deepEqual(value, defaultValue);
}
