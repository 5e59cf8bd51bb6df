/**
 * The model of the parameter fields. Unchanged parameters are not sent, so that the notebook's own
 * defaults apply.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { JSONExt, type JSONValue } from '@lumino/coreutils';

import type { Parameter } from '../api';

/**
 * The kind of a field's values: `json` is a list, a dictionary or null. `any` is for defaults that
 * are no literal: it takes JSON, or else text, as the command line does.
 */
export type FieldKind = 'bool' | 'int' | 'float' | 'text' | 'json' | 'any';

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
  /** Whether the notebook declares it. What it does not declare is set before its first cell. */
  isDeclared: boolean;
  error: string | null;
};

export class ParameterForm {
  /**
   * @param initialValues values that differ from the defaults, for example those of the last
   * submission
   */
  constructor(
    private readonly _trans: TranslationBundle,
    initialValues: Record<string, JSONValue> = {}
  ) {
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
    const others = [...this._changes.keys()].filter(
      name => !declared.has(name)
    );
    return [
      ...this._parameters.map(each => this._toField(each, true)),
      ...others.map(name => this._toField(undeclared(name), false))
    ];
  }

  /** The values to send: only those that differ from the defaults. */
  get values(): Record<string, JSONValue> {
    return Object.fromEntries(
      [...this._changes].flatMap(([name, { value }]) =>
        value === undefined ? [] : [[name, value] as const]
      )
    );
  }

  get hasErrors(): boolean {
    return [...this._changes.values()].some(isInvalid);
  }

  /** Set the parameters that the notebook declares. */
  setParameters(parameters: readonly Parameter[]): void {
    this._parameters = parameters;
  }

  setText(name: string, text: string): void {
    const declared = this._parameters?.find(each => each.name === name);
    const parameter = declared ?? undeclared(name);
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
  }

  private _toField(parameter: Parameter, isDeclared: boolean): ParameterField {
    const { name, help } = parameter;
    const kind = kindOf(parameter);
    const change = this._changes.get(name);
    const defaultValue = defaultOf(parameter);
    const defaultText =
      typeof defaultValue === 'number' ? parameter.default?.trim() : undefined;
    return {
      name,
      kind,
      help,
      source: defaultValue === undefined ? parameter.default : null,
      text:
        (change === undefined ? defaultText : change.text) ??
        formatValue(change === undefined ? defaultValue : change.value, kind),
      isChanged: change !== undefined,
      isDeclared,
      error: change && isInvalid(change) ? errorText(kind, this._trans) : null
    };
  }

  private _parameters: readonly Parameter[] | null = null;
  private readonly _changes: Map<string, Change>;
}

/**
 * A value that differs from the default, undefined if its text is invalid. The text is kept as it
 * was typed: `1e3` must not become `1000` while the user types.
 */
type Change = { value: JSONValue | undefined; text?: string };

/** What is known of a parameter that the notebook does not declare. */
function undeclared(name: string): Parameter {
  return { name, type: null, default: null, value: null, help: null };
}

function isInvalid({ value }: Change): boolean {
  return value === undefined;
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

/** The default as a value; undefined if it is no literal, or null, which has no type. */
function defaultOf({ value }: Parameter): JSONValue | undefined {
  return (value as JSONValue | undefined) ?? undefined;
}

function isDefault(value: JSONValue, parameter: Parameter): boolean {
  const defaultValue = defaultOf(parameter);
  return defaultValue !== undefined && JSONExt.deepEqual(value, defaultValue);
}

/** Parse a field's text; undefined if it is invalid. */
function parseText(text: string, kind: FieldKind): JSONValue | undefined {
  const trimmed = text.trim();
  switch (kind) {
    case 'bool':
      return text === 'true';
    case 'text':
      return text;
    case 'int':
      return INTEGER_PATTERN.test(trimmed) ? parseNumber(trimmed) : undefined;
    case 'float':
      return trimmed === '' ? undefined : parseNumber(trimmed);
    case 'json':
      return parseJson(trimmed);
    case 'any': {
      const value = parseJson(trimmed);
      return value === undefined ? text : value;
    }
  }
}

function formatValue(value: JSONValue | undefined, kind: FieldKind): string {
  if (value === undefined) {
    return '';
  }
  const isPlain = kind === 'text' || kind === 'any';
  return isPlain && typeof value === 'string' ? value : JSON.stringify(value);
}

function errorText(kind: FieldKind, trans: TranslationBundle): string {
  switch (kind) {
    case 'int':
      return trans.__('A whole number, such as 42.');
    case 'float':
      return trans.__('A number, such as 0.5 or 1e-3.');
    default:
      return trans.__('JSON, such as [1, 2], {"a": 1}, "text" or null.');
  }
}

const INTEGER_PATTERN = /^[+-]?\d+$/;

/** Parse a number; undefined if it would overflow, or be rounded as an integer. */
function parseNumber(text: string): number | undefined {
  const value = Number(text);
  return Number.isFinite(value) &&
    (Number.isSafeInteger(value) || !INTEGER_PATTERN.test(text))
    ? value
    : undefined;
}

const PYTHON_CONSTANTS = new Map([
  ['True', true],
  ['False', false],
  ['None', null]
]);

/** Parse JSON, or a constant of Python; undefined for anything else, and for inexact numbers. */
function parseJson(text: string): JSONValue | undefined {
  const constant = PYTHON_CONSTANTS.get(text);
  if (constant !== undefined) {
    return constant;
  }
  const numbers = text
    .replace(/"(?:[^"\\]|\\.)*"/g, '')
    .match(/-?\d[\d.eE+-]*/g);
  if (numbers?.some(number => parseNumber(number) === undefined)) {
    return undefined;
  }
  try {
    return JSON.parse(text) as JSONValue;
  } catch {
    return undefined;
  }
}
