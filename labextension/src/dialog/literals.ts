/**
 * Reads the default of a parameter: source text of the notebook's language. Only literals are
 * understood, those of JSON, Python, R and Julia; of anything else nothing is assumed.
 */
import type { JSONValue } from '@lumino/coreutils';

const WORDS: Record<string, JSONValue> = {
  true: true,
  True: true,
  TRUE: true,
  false: false,
  False: false,
  FALSE: false,
  null: null,
  None: null,
  NULL: null,
  nothing: null
};

const TOKEN =
  /\s*(?:([[\](){},:])|("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?L?(?![\w.]))|([A-Za-z]+))/y;

const CLOSING: Record<string, string> = { '[': ']', '(': ')' };

/** The value that a literal stands for; undefined for what is none, or cannot be said exactly. */
export function readLiteral(source: string): JSONValue | undefined {
  const reader = new Reader(source);
  const value = reader.value();
  return reader.atEnd ? value : undefined;
}

/** Reads one value after another; after a mistake everything is undefined. */
class Reader {
  constructor(private readonly _source: string) {}

  get atEnd(): boolean {
    return !this._failed && this._source.slice(this._at).trim() === '';
  }

  value(): JSONValue | undefined {
    const [, mark, text, number, word] = this._next();
    if (text !== undefined) {
      return this._or(unquote(text));
    }
    if (number !== undefined) {
      return this._or(exact(number));
    }
    if (word !== undefined) {
      return this._or(WORDS[word]);
    }
    if (mark === '{') {
      return this._object();
    }
    const closing = CLOSING[mark ?? ''];
    return closing === undefined ? this._or(undefined) : this._list(closing);
  }

  private _list(closing: string): JSONValue | undefined {
    const items: JSONValue[] = [];
    let commas = 0;
    while (!this._failed && !this._skip(closing)) {
      items.push(this.value() ?? null);
      commas += this._comma(closing) ? 1 : 0;
    }
    // Parentheses around a single value are no tuple.
    return closing === ')' && items.length === 1 && commas === 0
      ? items[0]
      : items;
  }

  private _object(): JSONValue | undefined {
    const entries: [string, JSONValue][] = [];
    while (!this._failed && !this._skip('}')) {
      const key = this.value();
      if (typeof key !== 'string' || !this._skip(':')) {
        return this._or(undefined);
      }
      entries.push([key, this.value() ?? null]);
      this._comma('}');
    }
    return Object.fromEntries(entries);
  }

  /** Take a comma, without which only the end may follow. */
  private _comma(closing: string): boolean {
    const there = this._skip(',');
    const before = this._at;
    if (!there && !this._skip(closing)) {
      this._failed = true;
    }
    this._at = before;
    return there;
  }

  private _skip(mark: string): boolean {
    const before = this._at;
    if (this._next()[1] === mark) {
      return true;
    }
    this._at = before;
    return false;
  }

  private _next(): (string | undefined)[] {
    TOKEN.lastIndex = this._at;
    const found = TOKEN.exec(this._source);
    this._at = found === null ? this._at : TOKEN.lastIndex;
    return found ?? [];
  }

  private _or(value: JSONValue | undefined): JSONValue | undefined {
    this._failed ||= value === undefined;
    return value;
  }

  private _at = 0;
  private _failed = false;
}

/** A number, unless JSON or JavaScript would make another one of it. */
function exact(text: string): number | undefined {
  const value = Number(text.replace(/_/g, '').replace(/L$/, ''));
  const isWhole = /^[+-]?[\d_]+L?$/.test(text);
  return Number.isFinite(value) && (!isWhole || Number.isSafeInteger(value))
    ? value
    : undefined;
}

const ESCAPES: Record<string, string> = {
  n: '\n',
  t: '\t',
  r: '\r',
  '\\': '\\',
  '"': '"',
  "'": "'"
};

/** The text of a string literal; undefined where it has an escape that is not known here. */
function unquote(literal: string): string | undefined {
  let known = true;
  const text = literal.slice(1, -1).replace(/\\(.)/g, (_, mark: string) => {
    known &&= mark in ESCAPES;
    return ESCAPES[mark] ?? '';
  });
  return known ? text : undefined;
}
