/**
 * Style sheets of outputs that are not trusted, such as those of styled pandas tables. They may
 * colour and align what is in the output. They can neither load anything, nor move or cover what
 * is outside of it.
 */

/** The properties that such a style sheet may set. */
const PROPERTY = new RegExp(
  '^(' +
    [
      'color',
      'background-(color|image|size|repeat|position-x|position-y)',
      'border-(top|right|bottom|left)-(color|style|width)',
      'border-(top|bottom)-(left|right)-radius',
      'border-(collapse|spacing)',
      'caption-side',
      'empty-cells',
      'font-(family|size|style|variant-caps|variant-numeric|weight)',
      'letter-spacing',
      'line-height',
      'opacity',
      'overflow-wrap',
      'padding-(top|right|bottom|left)',
      'table-layout',
      'text-align',
      'text-decoration-(line|color|style)',
      'text-(indent|overflow|transform)',
      'vertical-align',
      'white-space(-collapse)?',
      'word-break',
      '(min-|max-)?(width|height)'
    ].join('|') +
    ')$'
);

/** The functions that a value may call. `url()` is not among them, nor what can hide it. */
const FUNCTION =
  /^(rgba?|hsla?|hwb|lab|lch|oklab|oklch|color|calc|min|max|clamp|(repeating-)?(linear|radial|conic)-gradient)$/;

/** The parts of a sheet that matter here, as the browser has parsed them. */
export type StyleRule = {
  selectorText?: string;
  style?: Pick<CSSStyleDeclaration, 'getPropertyValue'> & ArrayLike<string>;
};

/** A sheet for what is inside of `scope`, and whether something was left out of it. */
export type SafeSheet = { text: string; isWhole: boolean };

/** Take the style sheets out of the source of an HTML output. */
export function extractStyles(source: string): string[] {
  if (!/<style/i.test(source)) {
    return [];
  }
  // A document of this kind runs no scripts and loads nothing.
  const parsed = new DOMParser().parseFromString(source, 'text/html');
  return [...parsed.querySelectorAll('style')].map(
    ({ textContent }) => textContent ?? ''
  );
}

/** Parse a style sheet. Sheets that are made in this way ignore `@import`. */
export function parseStyles(text: string): readonly StyleRule[] {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  return [...sheet.cssRules] as StyleRule[];
}

/** Keep of some rules what is harmless, for elements below one that matches `scope`. */
export function toSafeSheet(
  rules: readonly StyleRule[],
  scope: string
): SafeSheet {
  let isWhole = true;
  const lines: string[] = [];
  for (const { selectorText, style } of rules) {
    const selector = toSafeSelector(selectorText);
    if (selector === null || style === undefined) {
      isWhole = false;
      continue;
    }
    const declarations: string[] = [];
    for (const name of Array.from(style)) {
      const value = style.getPropertyValue(name);
      if (PROPERTY.test(name) && isSafeValue(value)) {
        declarations.push(`${name}: ${value};`);
      } else {
        isWhole = false;
      }
    }
    if (declarations.length > 0) {
      lines.push(`${scope} :is(${selector}) { ${declarations.join(' ')} }`);
    }
  }
  return { text: lines.join('\n'), isWhole };
}

/**
 * Make a selector match what is left after sanitising, where an `id` may be a `data-jupyter-id`.
 */
function toSafeSelector(selector: string | undefined): string | null {
  if (selector === undefined || !/^[\w\s#.,:()>+~*-]+$/.test(selector)) {
    return null;
  }
  return selector.replace(/#([\w-]+)/g, ':is(#$1, [data-jupyter-id="$1"])');
}

function isSafeValue(value: string): boolean {
  const functions = value.matchAll(/([^\s(,]*)\(/g);
  return (
    value !== '' &&
    !/[\\{};<]|\/\*/.test(value) &&
    [...functions].every(([, name]) => FUNCTION.test(name!))
  );
}
