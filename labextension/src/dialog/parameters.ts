/**
 * The notebook's parameters as a typed form: what is shown for each, and which value it stands for.
 * What was not changed is not sent, so that the notebook's own defaults go on being the truth.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { JSONExt, type JSONValue } from '@lumino/coreutils';

import type { Parameter } from '../api';
import { readLiteral } from './literals';

/**
 * What a field takes: `json` is a list, a dictionary or nothing; `any` belongs to a default that is
 * no literal, and takes JSON if it is JSON, and else text, as the command line does.
 */
export type Kind = 'bool' | 'int' | 'float' | 'text' | 'json' | 'any';

/** One parameter as it is shown. */
export type Field = {
  name: string;
  kind: Kind;
  help: string | null;
  /** The default as source text, for those that cannot be shown as a value. */
  source: string | null;
  /** What stands in the control; `'true'` and `'false'` for a checkbox. */
  text: string;
  changed: boolean;
  error: string | null;
};

/** The form's fields, and what they hold. */
export class ParameterForm {
  /** @param given values that differ from the defaults: what was sent the last time, say */
  constructor(
    private readonly _trans: TranslationBundle,
    given: Record<string, JSONValue> = {}
  ) {
    this._values = new Map(Object.entries(given));
  }

  /** The fields, in the notebook's order; null as long as nobody has read the notebook. */
  get fields(): Field[] | null {
    return this._declared && this._declared.map(each => this._field(each));
  }

  /** What is to be sent: only what differs from the notebook's defaults. */
  get values(): Record<string, JSONValue> {
    return Object.fromEntries(this._values);
  }

  /** Whether a field holds what it cannot take. */
  get isWrong(): boolean {
    return this._wrong.size > 0;
  }

  /** Take note of what the notebook declares; values for others are forgotten. */
  declare(parameters: readonly Parameter[]): void {
    this._declared = parameters;
    const names = new Set(parameters.map(({ name }) => name));
    for (const name of [...this._values.keys(), ...this._wrong.keys()]) {
      if (!names.has(name)) {
        this._forget(name);
      }
    }
  }

  /** Put what was typed into a field. */
  type(name: string, text: string): void {
    const parameter = this._declared?.find(each => each.name === name);
    if (parameter === undefined) {
      return;
    }
    this._forget(name);
    if (text === '' && defaultOf(parameter) === undefined) {
      return; // An empty field leaves a default that cannot be shown as it is.
    }
    const value = read(text, kindOf(parameter));
    if (value === undefined) {
      this._wrong.set(name, text);
    } else if (!isDefault(value, parameter)) {
      this._values.set(name, value);
      this._typed.set(name, text);
    }
  }

  /** Take a field back to the notebook's default. */
  reset(name: string): void {
    this._forget(name);
  }

  private _field(parameter: Parameter): Field {
    const { name, help } = parameter;
    const kind = kindOf(parameter);
    const value = this._values.get(name);
    const usual = defaultOf(parameter);
    const wrong = this._wrong.get(name);
    const untouched =
      typeof usual === 'number' ? parameter.default?.trim() : undefined;
    const shown =
      value === undefined
        ? (untouched ?? show(usual, kind))
        : show(value, kind);
    return {
      name,
      kind,
      help,
      source: usual === undefined ? parameter.default : null,
      text: wrong ?? this._typed.get(name) ?? shown,
      changed: value !== undefined || wrong !== undefined,
      error: wrong === undefined ? null : explain(kind, this._trans)
    };
  }

  private _forget(name: string): void {
    this._values.delete(name);
    this._typed.delete(name);
    this._wrong.delete(name);
  }

  private _declared: readonly Parameter[] | null = null;
  private readonly _values: Map<string, JSONValue>;
  /** How changed values were typed: `1e3` is not to become `1000` under the user's hands. */
  private readonly _typed = new Map<string, string>();
  private readonly _wrong = new Map<string, string>();
}

const HINTED: [RegExp, Kind][] = [
  [/^bool/i, 'bool'],
  [/^int/i, 'int'],
  [/^(float|double|number)/i, 'float'],
  [/^(str|string|character)/i, 'text'],
  [/^(list|dict|tuple|array|vector|map)/i, 'json']
];

/** What a parameter takes: by its default, and by the type that the notebook gives for it. */
function kindOf(parameter: Parameter): Kind {
  const hinted = HINTED.find(([type]) => type.test(parameter.type ?? ''))?.[1];
  const value = defaultOf(parameter);
  switch (typeof value) {
    case 'boolean':
      return 'bool';
    case 'number':
      // `rate = 1` may well become 0.5: only a notebook that says int means whole numbers.
      return hinted === 'int' ? 'int' : 'float';
    case 'string':
      return 'text';
    case 'object':
      return 'json';
    default:
      // A checkbox has no third state for a default that is an expression.
      return hinted === undefined || hinted === 'bool' ? 'any' : hinted;
  }
}

/** The default as a value; undefined where it is no literal, or None, which says nothing of a type. */
function defaultOf(parameter: Parameter): JSONValue | undefined {
  return parameter.default === null
    ? undefined
    : (readLiteral(parameter.default) ?? undefined);
}

function isDefault(value: JSONValue, parameter: Parameter): boolean {
  const usual = defaultOf(parameter);
  return usual !== undefined && JSONExt.deepEqual(value, usual);
}

/** The value that a text stands for; undefined if it is none of this kind. */
function read(text: string, kind: Kind): JSONValue | undefined {
  const trimmed = text.trim();
  switch (kind) {
    case 'bool':
      return text === 'true';
    case 'text':
      return text;
    case 'int':
      return WHOLE.test(trimmed) ? number(trimmed) : undefined;
    case 'float':
      return trimmed === '' ? undefined : number(trimmed);
    case 'json':
      return readLiteral(text);
    case 'any': {
      const value = readLiteral(text);
      return value === undefined ? text : value;
    }
  }
}

function show(value: JSONValue | undefined, kind: Kind): string {
  if (value === undefined) {
    return '';
  }
  const isPlain = kind === 'text' || kind === 'any';
  return isPlain && typeof value === 'string' ? value : JSON.stringify(value);
}

function explain(kind: Kind, trans: TranslationBundle): string {
  switch (kind) {
    case 'int':
      return trans.__('A whole number, such as 42.');
    case 'float':
      return trans.__('A number, such as 0.5 or 1e-3.');
    default:
      return trans.__('JSON, such as [1, 2], {"a": 1}, "text" or null.');
  }
}

const WHOLE = /^[+-]?\d+$/;

/** A number that arrives as it was typed: neither infinite nor rounded to fit. */
function number(text: string): number | undefined {
  const value = Number(text);
  return Number.isFinite(value) &&
    (Number.isSafeInteger(value) || !WHOLE.test(text))
    ? value
    : undefined;
}
