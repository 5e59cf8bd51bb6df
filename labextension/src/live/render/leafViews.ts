/** Views of models that contain no other ones. */
import { renderHTML } from '@jupyterlab/rendermime';

import { createRemark } from './remark';
import { WidgetView } from './widgetView';

const PICTURE_FORMAT = /^(png|jpe?g|gif|webp|bmp|svg\+xml)$/;
const BAR_STYLE = /^(success|info|warning|danger)$/;

/** IntProgress and FloatProgress: what tqdm shows. */
export class ProgressView extends WidgetView {
  protected override render(): void {
    const { node } = this;
    const [min, max] = [this.number('min', 0), this.number('max', 100)];
    const value = Math.min(Math.max(this.number('value', 0), min), max);
    const description = this.text('description');
    const isVertical = this.text('orientation') === 'vertical';
    if (this._bar.parentElement === null) {
      this._track.className = 'jp-ToJob-widget-track';
      this._track.setAttribute('role', 'progressbar');
      this._track.append(this._bar);
      this._label.className = 'jp-ToJob-widget-label';
      node.append(this._label, this._track);
    }
    node.classList.add('jp-ToJob-widget-progress');
    node.classList.toggle('jp-mod-vertical', isVertical);
    setLabel(this._label, description);
    this._track.setAttribute(
      'aria-label',
      description || this.services.trans.__('Progress')
    );
    this._track.setAttribute('aria-valuemin', String(min));
    this._track.setAttribute('aria-valuemax', String(max));
    this._track.setAttribute('aria-valuenow', String(value));
    const percent = max > min ? (100 * (value - min)) / (max - min) : 0;
    this._bar.style.removeProperty(isVertical ? 'width' : 'height');
    this._bar.style[isVertical ? 'height' : 'width'] = `${percent}%`;
    const style = this.text('bar_style');
    this._bar.className = `jp-ToJob-widget-bar jp-mod-${BAR_STYLE.test(style) ? style : 'info'}`;
    const color = this.referred('style')?.bar_color;
    this._bar.style.backgroundColor = typeof color === 'string' ? color : '';
  }

  private readonly _label = document.createElement('span');
  private readonly _track = document.createElement('div');
  private readonly _bar = document.createElement('div');
}

/** Label: text and nothing else. */
export class LabelView extends WidgetView {
  protected override render(): void {
    this.node.textContent = this.text('value');
  }
}

/** HTML and HTMLMath, sanitised. */
export class HTMLView extends WidgetView {
  protected override render(): void {
    if (this._content.parentElement === null) {
      this._label.className = 'jp-ToJob-widget-label';
      this._content.className = 'jp-RenderedHTMLCommon';
      this.node.append(this._label, this._content);
      this.node.classList.add('jp-ToJob-widget-line');
    }
    setLabel(this._label, this.text('description'));
    const source = this.text('value');
    if (source === this._source) {
      return;
    }
    this._source = source;
    const { sanitizer, resolver, linkHandler, latexTypesetter } =
      this.services.rendermime;
    void renderHTML({
      host: this._content,
      source,
      trusted: false,
      sanitizer,
      resolver,
      linkHandler,
      shouldTypeset: this.text('_model_name') === 'HTMLMathModel',
      latexTypesetter
    });
  }

  private _source = '';
  private readonly _label = document.createElement('span');
  private readonly _content = document.createElement('div');
}

/** Image: a picture that is in the model. One that would have to be loaded is not shown. */
export class ImageView extends WidgetView {
  protected override render(): void {
    const { trans } = this.services;
    const format = this.text('format').toLowerCase();
    const data = this.model?.getBuffer('value') ?? '';
    const size = (name: string) =>
      /^\d+$/.test(this.text(name)) ? `${this.text(name)}px` : '';
    if (format === 'url' || data === '') {
      const remark = trans.__('A picture is not shown here.');
      this.node.replaceChildren(
        ...(format === 'url' ? [createRemark(remark)] : [])
      );
      return;
    }
    const type = PICTURE_FORMAT.test(format) ? format : 'png';
    this._picture.src = `data:image/${type.replace('jpg', 'jpeg')};base64,${data}`;
    this._picture.alt = trans.__('Picture');
    this._picture.style.width = size('width');
    this._picture.style.height = size('height');
    this.node.replaceChildren(this._picture);
  }

  private readonly _picture = document.createElement('img');
}

/** A control, such as a slider: its label and its value as text. */
export class ValueView extends WidgetView {
  override get simplified(): string {
    return this.services.trans.__(
      'Controls are shown as text here: the result has them.'
    );
  }

  protected override render(): void {
    if (this._value.parentElement === null) {
      this._label.className = 'jp-ToJob-widget-label';
      this._value.className = 'jp-ToJob-widget-value';
      this.node.classList.add('jp-ToJob-widget-line');
      this.node.append(this._label, this._value);
    }
    setLabel(this._label, this.text('description'));
    this._value.textContent = this._valueText();
    this._value.hidden = this._value.textContent === '';
  }

  /** The value as the control would show it. */
  private _valueText(): string {
    const { state } = this;
    const name = this.text('_model_name');
    if (name === 'PasswordModel') {
      return '•••';
    }
    const labels = state._options_labels;
    if (Array.isArray(labels)) {
      const indices = [state.index].flat();
      return indices
        .map(index => (typeof index === 'number' ? labels[index] : undefined))
        .filter(label => typeof label === 'string')
        .join(', ');
    }
    const { value } = state;
    return typeof value === 'boolean'
      ? value
        ? '☑'
        : '☐'
      : Array.isArray(value)
        ? value.map(String).join(' – ')
        : typeof value === 'string' || typeof value === 'number'
          ? String(value)
          : '';
  }

  private readonly _label = document.createElement('span');
  private readonly _value = document.createElement('span');
}

/** A model that cannot be shown: a word in its place. */
export class UnknownView extends WidgetView {
  protected override render(): void {
    const { store, trans } = this.services;
    const name = this.text('_model_name').replace(/Model$/, '');
    const isGone = store.isClosed(this.id) || this.state._view_name === null;
    const text =
      name === ''
        ? trans.__('A widget is not shown here: the result has it.')
        : trans.__('The widget %1 is not shown here: the result has it.', name);
    this.node.replaceChildren(...(isGone ? [] : [createRemark(text)]));
  }
}

function setLabel(label: HTMLElement, text: string): void {
  label.textContent = text;
  label.hidden = text === '';
}
