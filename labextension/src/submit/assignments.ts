/**
 * Finds the assignments of a parameters cell, and changes their values in place: comments, types and
 * the order stay as the user wrote them.
 */
import type { JSONValue } from '@lumino/coreutils';

/** A piece of a source, and what replaces it. */
export type Edit = { start: number; end: number; text: string };

/**
 * `name = `, `name: type = `, `name += ` or R's `name <- ` at the beginning of a statement. The third
 * group is the operator of `+=` and the like. `else: name = ` has no type.
 */
const ASSIGNMENT =
  /[ \t]*(?!(?:else|try|except|finally)\b)([A-Za-z_][\w.]*)([ \t]*(?::[^=\n]*)?(\*\*?|\/\/?|<<|>>|[-+%@&|^])?(?:=(?!=)|<-)[ \t]*)/y;

/** Where a value is, and what joins the name to it, such as ` = `. */
type Value = { start: number; end: number; joint: string };

/**
 * Find the place of each name's value; of a name that is assigned again, the last one. A value that
 * is assigned to several names, `a = b = 1`, has no place: it cannot be changed for one of them. Nor
 * has a value in an indented line, or in one that begins with `if fast:` or the like: not every run
 * sets it. `lr *= 2` computes the value, which has no place then.
 */
export function findValues(source: string): Map<string, Value> {
  const found = new Map<string, Value>();
  let offset = 0;
  let isInBlock = false;
  while (offset < source.length) {
    const match = matchAssignment(source, offset);
    if (offset === 0 || source[offset - 1] === '\n') {
      isInBlock = match === null || /\s/.test(source[offset]!);
    }
    const start = offset + (match?.[0].length ?? 0);
    const { end, next, body } = scanStatement(source, start);
    if (match === null) {
      found.delete(matchAssignment(source, body)?.[1] ?? '');
    } else {
      const [, name, joint, operator] = match;
      const isChained = CHAINED.test(source.slice(start, end));
      if (isInBlock || isChained || operator !== undefined) {
        found.delete(name!);
      } else {
        found.set(name!, { start, end, joint: joint! });
      }
    }
    offset = next;
  }
  return found;
}

function matchAssignment(
  source: string,
  offset: number
): RegExpExecArray | null {
  ASSIGNMENT.lastIndex = offset;
  return ASSIGNMENT.exec(source);
}

/**
 * The edits that set parameters: values that are assigned are replaced, and what is not assigned is
 * added at the end.
 *
 * @param literals the values in the language of the source
 * @param joint what joins a name to its value where one is added
 */
export function editParameters(
  source: string,
  literals: Record<string, string>,
  joint = ' = '
): Edit[] {
  const values = findValues(source);
  const edits: Edit[] = [];
  const added: string[] = [];
  for (const [name, literal] of Object.entries(literals)) {
    const place = values.get(name);
    if (place === undefined) {
      added.push(name + joint + literal);
    } else if (source.slice(place.start, place.end) !== literal) {
      edits.push({ start: place.start, end: place.end, text: literal });
    }
  }
  if (added.length > 0) {
    const isOpen = source !== '' && !source.endsWith('\n');
    const text = (isOpen ? '\n' : '') + added.join('\n');
    edits.push({ start: source.length, end: source.length, text });
  }
  return edits.sort((a, b) => b.start - a.start); // the last first: places stay right
}

/** Apply edits, which are in the order of `editParameters`. */
export function applyEdits(source: string, edits: readonly Edit[]): string {
  return edits.reduce(
    (text, { start, end, text: inserted }) =>
      text.slice(0, start) + inserted + text.slice(end),
    source
  );
}

/** A value that begins with one more assignment. */
const CHAINED = /^[A-Za-z_][\w.]*[ \t]*(?:=(?!=)|<-)/;

const OPENING = '([{';
const CLOSING = ')]}';

/**
 * Find where a statement ends, without its comment, and where the next one begins. `body` is the
 * place after the colon of `if fast:` or the like, and the end of a statement without one.
 */
function scanStatement(
  source: string,
  start: number
): { end: number; next: number; body: number } {
  let depth = 0;
  let body: number | undefined;
  let end = start; // after the last character that is neither blank nor comment
  let index = start;
  while (index < source.length) {
    const character = source[index]!;
    if (character === '#') {
      index = endOfLine(source, index);
      continue;
    }
    if ((character === '\n' || character === ';') && depth === 0) {
      break;
    }
    if (character === '"' || character === "'") {
      index = end = endOfString(source, index);
      continue;
    }
    if (OPENING.includes(character)) {
      depth += 1;
    } else if (CLOSING.includes(character)) {
      depth = Math.max(depth - 1, 0);
    } else if (character === ':' && source[index + 1] !== '=' && depth === 0) {
      body ??= index + 1;
    }
    index += character === '\\' ? 2 : 1;
    if (!/\s/.test(character)) {
      end = Math.min(index, source.length);
    }
  }
  const next = Math.min(index + 1, source.length);
  return { end, next, body: body ?? end };
}

function endOfLine(source: string, index: number): number {
  const end = source.indexOf('\n', index);
  return end === -1 ? source.length : end;
}

/** The index after a string that begins here, which may have three quotes. */
function endOfString(source: string, start: number): number {
  const triple = source.slice(start, start + 3);
  const quote = /^("""|''')$/.test(triple) ? triple : source[start]!;
  let index = start + quote.length;
  while (index < source.length) {
    if (source[index] === '\\') {
      index += 2;
    } else if (source.startsWith(quote, index)) {
      return index + quote.length;
    } else if (quote.length === 1 && source[index] === '\n') {
      return index; // it is not closed
    } else {
      index += 1;
    }
  }
  return source.length;
}

/** A value as a literal of Python. */
export function pythonLiteral(value: JSONValue): string {
  if (value === null) {
    return 'None';
  }
  if (typeof value === 'boolean') {
    return value ? 'True' : 'False';
  }
  if (Array.isArray(value)) {
    return `[${value.map(pythonLiteral).join(', ')}]`;
  }
  if (typeof value === 'object') {
    const entries = Object.entries(value).map(
      ([key, each]) => `${JSON.stringify(key)}: ${pythonLiteral(each)}`
    );
    return `{${entries.join(', ')}}`;
  }
  return JSON.stringify(value);
}
