/** Views of models that contain other ones, or outputs; and the choice of a model's view. */
import { OutputArea, OutputAreaModel } from '@jupyterlab/outputarea';

import type { Outputs } from '../outputs';
import { syncOutputs } from './syncOutputs';
import {
  HTMLView,
  ImageView,
  LabelView,
  ProgressView,
  UnknownView,
  ValueView
} from './leafViews';
import { referredIds, type WidgetServices, WidgetView } from './widgetView';

/** The most children of a box that are shown, and how deep boxes may be nested. */
const MAX_CHILDREN = 500;
const MAX_DEPTH = 12;

/** The modules whose models are known here. */
const MODULES = [
  '@jupyter-widgets/base',
  '@jupyter-widgets/controls',
  '@jupyter-widgets/output'
];

type ViewClass = new (
  services: WidgetServices,
  id: string,
  path: readonly string[]
) => WidgetView;

/** HBox, VBox and the like, with their children. */
class BoxView extends WidgetView {
  override get simplified(): string | null {
    return (
      [...this._children.values()]
        .map(({ simplified }) => simplified)
        .find(text => text !== null) ?? null
    );
  }

  override get isCut(): boolean {
    return (
      this._isCut || [...this._children.values()].some(({ isCut }) => isCut)
    );
  }

  override update(changed: ReadonlySet<string> | null): void {
    const known = new Map(this._children);
    super.update(changed);
    for (const [id, view] of this._children) {
      if (known.get(id) === view) {
        view.update(changed);
      }
      const current = chooseView(this.services, view.id);
      if (!(view instanceof current)) {
        this._replace(id, view, current);
      }
    }
  }

  override dispose(): void {
    this._children.forEach(view => view.dispose());
    super.dispose();
  }

  protected override render(): void {
    const kind = BOX_CLASSES[this.text('_model_name')] ?? 'vbox';
    this.node.classList.add('jp-ToJob-widget-box', `jp-ToJob-widget-${kind}`);
    const all = [...new Set(referredIds(this.state.children))].filter(
      id => !this.path.includes(id)
    );
    const ids = all.slice(0, this.path.length < MAX_DEPTH ? MAX_CHILDREN : 0);
    for (const [id, view] of this._children) {
      if (!ids.includes(id)) {
        view.dispose();
        this._children.delete(id);
      }
    }
    const children = ids
      .map(id => this._children.get(id) ?? this._create(id))
      .filter(view => view !== null);
    this._isCut = children.length < all.length;
    children.forEach((child, index) => {
      const node = this.wrap(child.node, index);
      if (this.node.children[index] !== node) {
        this.node.insertBefore(node, this.node.children[index] ?? null);
      }
    });
    while (this.node.children.length > children.length) {
      this.node.lastElementChild!.remove();
    }
  }

  /** What stands in the box for a child. */
  protected wrap(node: HTMLElement, _index: number): HTMLElement {
    return node;
  }

  private _create(id: string): WidgetView | null {
    const view = createView(this.services, id, this.path);
    if (view !== null) {
      this._children.set(id, view);
    }
    return view;
  }

  private _replace(id: string, view: WidgetView, current: ViewClass): void {
    const replacement = new current(this.services, id, [...this.path, id]);
    this._children.set(id, replacement);
    replacement.update(null);
    view.node.replaceWith(replacement.node);
    view.dispose();
  }

  private readonly _children = new Map<string, WidgetView>();
  private _isCut = false;
}

/** Tabs, an accordion, a stack: all of their children one below the other, with their titles. */
class TitledBoxView extends BoxView {
  override get simplified(): string {
    return (
      super.simplified ??
      this.services.trans.__(
        'Tabs are shown one below the other here: the result has them.'
      )
    );
  }

  protected override wrap(node: HTMLElement, index: number): HTMLElement {
    const existing = node.parentElement;
    const section = existing?.classList.contains('jp-ToJob-widget-section')
      ? existing
      : document.createElement('div');
    const { titles, _titles } = this.state;
    const old = (_titles ?? {}) as Record<string, unknown>;
    const title = Array.isArray(titles) ? titles[index] : old[String(index)];
    section.className = 'jp-ToJob-widget-section';
    section.dataset.title = typeof title === 'string' ? title : '';
    section.append(node);
    return section;
  }
}

/** Output: what was printed and displayed in it. */
class OutputView extends WidgetView {
  constructor(services: WidgetServices, id: string, path: readonly string[]) {
    super(services, id, path);
    this._area = new OutputArea({
      model: this._outputs,
      rendermime: services.rendermimeInside(path),
      maxNumberOutputs: Infinity
    });
    this.node.append(this._area.node);
  }

  override get isCut(): boolean {
    const outputs = this.model?.outputs?.shown ?? [];
    return this._shown.length < outputs.length;
  }

  override dispose(): void {
    this._area.dispose();
    this._outputs.dispose();
    super.dispose();
  }

  protected override render(): void {
    const shown =
      this.path.length < MAX_DEPTH ? (this.model?.outputs?.shown ?? []) : [];
    syncOutputs(this._outputs, this._shown, shown);
    this._shown = shown;
  }

  private readonly _outputs = new OutputAreaModel({ trusted: false });
  private readonly _area: OutputArea;
  private _shown: Outputs['shown'] = [];
}

const BOX_CLASSES: Record<string, string> = {
  HBoxModel: 'hbox',
  GridBoxModel: 'grid'
};

/** The views by the names of models. Other models with a value are shown as text. */
const VIEWS: Record<string, ViewClass> = {
  IntProgressModel: ProgressView,
  FloatProgressModel: ProgressView,
  LabelModel: LabelView,
  HTMLModel: HTMLView,
  HTMLMathModel: HTMLView,
  ImageModel: ImageView,
  BoxModel: BoxView,
  HBoxModel: BoxView,
  VBoxModel: BoxView,
  GridBoxModel: BoxView,
  AccordionModel: TitledBoxView,
  TabModel: TitledBoxView,
  StackModel: TitledBoxView,
  OutputModel: OutputView
};

/** Models that have a value, but no text that would stand for it. */
const NO_TEXT = /^(Audio|Video|Controller|Play|FileUpload|Dom|Core)/;

/** Show a model inside of the models of a path; null if the output may have no more of it. */
export function createView(
  services: WidgetServices,
  id: string,
  path: readonly string[]
): WidgetView | null {
  if (services.views.isFull || path.includes(id)) {
    return null;
  }
  const view = new (chooseView(services, id))(services, id, [...path, id]);
  view.update(null);
  return view;
}

/** The view for a model as it is now. */
export function chooseView({ store }: WidgetServices, id: string): ViewClass {
  const model = store.get(id);
  const { _model_name, _model_module, _view_name } = model?.state ?? {};
  const isKnown =
    MODULES.includes(_model_module as string) && _view_name !== null;
  if (model === undefined || !isKnown || model.omitted > 0) {
    return UnknownView;
  }
  const name = typeof _model_name === 'string' ? _model_name : '';
  if (Object.hasOwn(VIEWS, name)) {
    return VIEWS[name]!;
  }
  const hasText =
    ['value', 'description', '_options_labels'].some(
      key => key in model.state
    ) && !NO_TEXT.test(name);
  return hasText ? ValueView : UnknownView;
}
