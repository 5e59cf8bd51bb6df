/**
 * What there is to translate, read from the sources by TypeScript's own parser.
 *
 * `npm run strings` brings the catalogs up to date: new strings are listed, those that are gone are
 * dropped, and the order is the sources'. `npm run strings -- --list` prints what it found as JSON.
 *
 * A catalog is what JupyterLab's server reads, `jupyter_to_job/locale/<language>/LC_MESSAGES/
 * jupyter_to_job.json`, and there is no other form of it: nothing is compiled. A string's key is
 * its context, U+0004 and itself, or just itself; a plural has a second, empty translation, because
 * JupyterLab takes a list of one for a singular (Chinese has one form for both).
 */
const fs = require('fs');
const path = require('path');
const ts = require('typescript');

const ROOT = path.dirname(__dirname);
const SOURCES = path.join(ROOT, 'labextension', 'src');
const CATALOGS = path.join(ROOT, 'jupyter_to_job', 'locale');

/** The methods of a TranslationBundle, by what their first arguments are. */
const METHODS = {
  __: ['text'],
  gettext: ['text'],
  _n: ['text', 'plural'],
  ngettext: ['text', 'plural'],
  _p: ['context', 'text'],
  pgettext: ['context', 'text'],
  _np: ['context', 'text', 'plural'],
  npgettext: ['context', 'text', 'plural']
};

/** A string's key in a catalog. */
function keyOf({ context, text }) {
  return context ? `${context}\u0004${text}` : text;
}

/** All strings of the sources: `{text, plural?, context?, at}`, each of them once. */
function collect() {
  const found = new Map();
  const add = string => {
    const known = found.get(keyOf(string));
    if (known && known.plural !== string.plural) {
      throw new Error(
        `${string.at}: with a plural there, without one in ${known.at}`
      );
    }
    found.set(keyOf(string), known ?? string);
  };
  for (const file of filesBelow(SOURCES, /\.tsx?$/)) {
    ofSource(file).forEach(add);
  }
  return [...found.values()];
}

function filesBelow(folder, pattern) {
  return fs
    .readdirSync(folder, { recursive: true })
    .filter(name => pattern.test(name))
    .sort()
    .map(name => path.join(folder, name));
}

function ofSource(file) {
  const text = fs.readFileSync(file, 'utf8');
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const strings = [];
  const visit = node => {
    if (
      ts.isCallExpression(node) &&
      ts.isPropertyAccessExpression(node.expression)
    ) {
      const method = node.expression.name.text;
      if (Object.hasOwn(METHODS, method)) {
        strings.push(ofCall(node, METHODS[method], source));
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return strings;
}

function ofCall(call, parts, source) {
  const { line } = source.getLineAndCharacterOfPosition(call.getStart());
  const string = { at: `${path.relative(ROOT, source.fileName)}:${line + 1}` };
  parts.forEach((part, index) => {
    const argument = call.arguments[index];
    if (!argument || !ts.isStringLiteralLike(argument)) {
      throw new Error(
        `${string.at}: ${part} is not written there as one string`
      );
    }
    string[part] = argument.text;
  });
  return string;
}

/** Rewrite a catalog in the sources' order, and return the keys that it does not translate. */
function update(file, strings) {
  const before = JSON.parse(fs.readFileSync(file, 'utf8'));
  const after = { '': before[''] };
  const missing = [];
  for (const string of strings) {
    const key = keyOf(string);
    const [translation] = before[key] ?? [];
    if (translation) {
      after[key] =
        string.plural === undefined ? [translation] : [translation, ''];
    } else {
      missing.push(string);
    }
  }
  const lines = Object.entries(after).map(
    ([key, value]) => `  ${JSON.stringify(key)}: ${JSON.stringify(value)}`
  );
  fs.writeFileSync(file, `{\n${lines.join(',\n')}\n}\n`);
  return missing;
}

function main() {
  const strings = collect();
  if (process.argv.includes('--list')) {
    console.log(JSON.stringify(strings, null, 2));
    return;
  }
  for (const file of filesBelow(CATALOGS, /\.json$/)) {
    for (const string of update(file, strings)) {
      console.error(
        `${path.relative(ROOT, file)} lacks ${JSON.stringify(keyOf(string))} (${string.at})`
      );
      process.exitCode = 1;
    }
  }
}

main();
