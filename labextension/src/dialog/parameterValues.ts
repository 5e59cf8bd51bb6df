/** Parses and formats what is typed for parameters: one value, or several of them. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { JSONValue } from '@lumino/coreutils';

/**
 * The kind of a field's values: `json` is a list, a dictionary or null. `any` is for defaults that
 * are no literal: it takes JSON, or else text, as the command line does. JSON with a number that the
 * browser would round is neither.
 */
export type FieldKind = 'bool' | 'int' | 'float' | 'text' | 'json' | 'any';

/** What separates several values of text, and what an `<input>` removes from its own. */
export const LINE_BREAK = /[\r\n]/;

/** Parse a field's text; undefined if it is invalid. */
export function parseText(
  text: string,
  kind: FieldKind
): JSONValue | undefined {
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
      return value === undefined && !isTooLarge(trimmed) ? text : value;
    }
  }
}

/** Format a value as `parseText` reads it. */
export function formatValue(
  value: JSONValue | undefined,
  kind: FieldKind
): string {
  if (value === undefined) {
    return '';
  }
  const isPlain = kind === 'text' || kind === 'any';
  return isPlain && typeof value === 'string' ? value : JSON.stringify(value);
}

/** Kinds whose values have no commas and no blanks. */
const PLAIN_KINDS: readonly FieldKind[] = ['bool', 'int', 'float'];

/**
 * Parse the text of several values: one on each line, or a list as the command line takes it;
 * numbers may be separated by commas, too. Undefined if one of them is invalid, or there is none.
 */
export function parseValues(
  text: string,
  kind: FieldKind
): JSONValue[] | undefined {
  const list = kind === 'any' ? parseJson(text.trim()) : null;
  if (Array.isArray(list)) {
    return list.length > 0 ? list : undefined;
  }
  if (kind === 'any' && isTooLarge(text)) {
    return undefined;
  }
  const values = splitValues(text, kind).map(part => parseOneOf(part, kind));
  return values.length === 0 || values.includes(undefined)
    ? undefined
    : (values as JSONValue[]);
}

function splitValues(text: string, kind: FieldKind): string[] {
  const parts = PLAIN_KINDS.includes(kind)
    ? text.replace(/^\s*\[|\]\s*$/g, '').split(/[\s,;]+/)
    : text.split('\n');
  return parts.filter(part => part.trim() !== '');
}

function parseOneOf(text: string, kind: FieldKind): JSONValue | undefined {
  if (kind === 'bool') {
    const word = text.trim().toLowerCase();
    return word === 'true' ? true : word === 'false' ? false : undefined;
  }
  return parseText(text, kind);
}

/** What a field of this kind takes, or why it does not take a number. */
export function errorText(
  kind: FieldKind,
  text: string,
  trans: TranslationBundle
): string {
  const isNumber = kind === 'int' || kind === 'float';
  if (isNumber && splitValues(text, kind).some(isTooLargeNumber)) {
    return trans.__(
      'This number is too large for the browser; a terminal keeps all its digits.'
    );
  }
  switch (kind) {
    case 'int':
      return trans.__('A whole number, such as 42.');
    case 'float':
      return trans.__('A number, such as 0.5 or 1e-3.');
    case 'bool':
      return trans.__('Both values: true, false.');
    default:
      if ([text, ...splitValues(text, kind)].some(isTooLarge)) {
        return trans.__(
          'This number is too large for the browser. In quotes it is text; a terminal keeps all its digits.'
        );
      }
      return kind === 'text'
        ? trans.__('At least one value.')
        : trans.__('JSON, such as [1, 2], {"a": 1}, "text" or null.');
  }
}

const INTEGER_PATTERN = /^(?:[+-]?\d+|0[xob][\da-f]+)$/i;

/** Parse a number; undefined if it would overflow, or be rounded as an integer. */
function parseNumber(text: string): number | undefined {
  const value = Number(text);
  return Number.isFinite(value) &&
    (Number.isSafeInteger(value) || !INTEGER_PATTERN.test(text))
    ? value
    : undefined;
}

/** Whether a text is a number, in decimals or hexadecimal for instance, that `parseNumber` refuses. */
function isTooLargeNumber(text: string): boolean {
  const isNumber = /\d/.test(text) && !Number.isNaN(Number(text));
  return isNumber && parseNumber(text) === undefined;
}

const PYTHON_CONSTANTS = new Map([
  ['True', true],
  ['False', false],
  ['None', null]
]);

/** Whether a text is JSON but for a number that would overflow or be rounded. */
function isTooLarge(text: string): boolean {
  try {
    JSON.parse(text);
    return parseJson(text.trim()) === undefined;
  } catch {
    return false;
  }
}

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
