/** An output that shows an ipywidget, read-only and without a kernel. */
import type { IRenderMime } from '@jupyterlab/rendermime';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import type { WidgetStore } from '../widgetStore';
import { chooseView, createView } from './boxViews';
import { createRemark } from './remark';
import type { WidgetServices, WidgetView } from './widgetView';

/** The MIME type of such an output: its data names the model. */
export const WIDGET_VIEW = 'application/vnd.jupyter.widget-view+json';

export class WidgetOutput extends Widget implements IRenderMime.IRenderer {
  /** @param _path the ids of the models around the output, if it is in an Output widget */
  constructor(
    private readonly _services: WidgetServices,
    private readonly _path: readonly string[]
  ) {
    super();
    this.addClass('jp-ToJob-widget-output');
    _services.store.changed.connect(this._onChanged, this);
  }

  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const { model_id } = (model.data[WIDGET_VIEW] ?? {}) as {
      model_id?: unknown;
    };
    this._id = String(model_id);
    this._show();
    return Promise.resolve();
  }

  override dispose(): void {
    this._view?.dispose();
    this._view = null;
    super.dispose();
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this._show();
  }

  private _onChanged(_: WidgetStore, ids: ReadonlySet<string>): void {
    if (this._view === null) {
      return;
    }
    if (this._view instanceof chooseView(this._services, this._id)) {
      this._view.update(ids);
      this._updateRemark();
    } else {
      this._show();
    }
  }

  private _show(): void {
    this._view?.dispose();
    this._view = createView(this._services, this._id, this._path);
    this.node.replaceChildren(
      ...(this._view === null ? [] : [this._view.node])
    );
    this._remark = null;
    this._updateRemark();
  }

  private _updateRemark(): void {
    const text = this._remarkText() ?? '';
    if (text !== (this._remark?.textContent ?? '')) {
      this._remark?.remove();
      this._remark = text === '' ? null : createRemark(text);
      if (this._remark !== null) {
        this.node.append(this._remark);
      }
    }
  }

  /** What is not shown as it is; null if all is. */
  private _remarkText(): string | null {
    return this._view === null || this._view.isCut
      ? this._services.trans.__(
          'Not all widgets of this output are shown here: the result has them.'
        )
      : this._view.simplified;
  }

  private _id = '';
  private _view: WidgetView | null = null;
  private _remark: HTMLElement | null = null;
}
