/** Renders HTML and SVG that are not trusted: sanitised, but with the look of styled tables. */
import {
  type IRenderMime,
  RenderedCommon,
  RenderedHTML
} from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import { UUID } from '@lumino/coreutils';

import { createRemark } from './remark';
import { extractStyles, parseStyles, toSafeSheet } from './safeStyle';

/** What a sanitiser takes away so that something is missing. */
const ACTIVE = /<(script|iframe|object|embed|form)\b|<[a-z][^>]*\son\w+\s*=/i;

/** HTML of an output, sanitised whatever its model says. */
export class SafeHTML extends RenderedHTML {
  constructor(
    options: IRenderMime.IRendererOptions,
    private readonly _trans: TranslationBundle
  ) {
    super(options);
    this.addClass(this._scope);
  }

  override async render(model: IRenderMime.IMimeModel): Promise<void> {
    const { data, metadata } = model;
    const source = textOf(data[this.mimeType]);
    await super.render({
      data: { [this.mimeType]: source },
      metadata,
      trusted: false,
      setData: options => model.setData(options)
    });
    const isStyled = this._addStyles(source);
    if (ACTIVE.test(source)) {
      this._addRemark(
        this._trans.__(
          'What runs scripts or asks for input is left out here: the result has it.'
        )
      );
    } else if (!isStyled) {
      this._addRemark(
        this._trans.__('Shown in a simpler style here: the result has all.')
      );
    }
  }

  /** Add what is harmless of the output's style sheets; whether that is all of them. */
  private _addStyles(source: string): boolean {
    const sheets = extractStyles(source).map(text =>
      toSafeSheet(parseStyles(text), `.${this._scope}`)
    );
    for (const { text } of sheets) {
      const style = document.createElement('style');
      style.textContent = text;
      this.node.prepend(style);
    }
    return sheets.every(({ isWhole }) => isWhole);
  }

  private _addRemark(text: string): void {
    this.node.append(createRemark(text));
  }

  private readonly _scope = `jp-ToJob-scope-${UUID.uuid4()}`;
}

/** An SVG as a picture: in a picture, browsers run no script and load nothing. */
export class SafeSVG extends RenderedCommon {
  constructor(
    options: IRenderMime.IRendererOptions,
    private readonly _trans: TranslationBundle
  ) {
    super(options);
    this.addClass('jp-RenderedSVG');
  }

  override render({ data }: IRenderMime.IMimeModel): Promise<void> {
    const picture = document.createElement('img');
    picture.src = svgAddress(textOf(data[this.mimeType]));
    picture.alt = this._trans.__('Picture');
    picture.addEventListener('error', () =>
      picture.replaceWith(
        createRemark(
          this._trans.__(
            'This picture cannot be shown here: the result has it.'
          )
        )
      )
    );
    this.node.replaceChildren(picture);
    return Promise.resolve();
  }
}

/** The address of an SVG. In a file of its own it needs the namespace that HTML implies. */
function svgAddress(source: string): string {
  const named = /<svg[^>]*\sxmlns\s*=/i.test(source)
    ? source
    : source.replace(/<svg\b/i, '<svg xmlns="http://www.w3.org/2000/svg"');
  return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(named)}`;
}

/** A text of a MIME bundle, which may come as a list of lines. */
function textOf(value: unknown): string {
  return Array.isArray(value)
    ? value.join('')
    : typeof value === 'string'
      ? value
      : JSON.stringify(value);
}
