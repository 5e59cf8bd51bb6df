/** The base of what shows one model of an ipywidget. */
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { JSONObject, JSONValue } from '@lumino/coreutils';

import type { WidgetModel, WidgetStore } from '../widgetStore';
import { applyLayout } from './layoutStyle';
import type { ViewCount } from './viewCount';

/** What the views of one output share. */
export type WidgetServices = {
  store: WidgetStore;
  rendermime: IRenderMimeRegistry;
  trans: TranslationBundle;
  views: ViewCount;
  /** Renders what is inside of the models of a path, as a part of the same output. */
  rendermimeInside: (path: readonly string[]) => IRenderMimeRegistry;
};

const REFERENCE = 'IPY_MODEL_';

/** The id of the model that a value refers to. */
export function referredId(value: JSONValue | undefined): string | null {
  return typeof value === 'string' && value.startsWith(REFERENCE)
    ? value.slice(REFERENCE.length)
    : null;
}

/** The ids of the models in a list of references. */
export function referredIds(value: JSONValue | undefined): string[] {
  return (Array.isArray(value) ? value : [])
    .map(referredId)
    .filter(id => id !== null);
}

/** Shows one model, and updates when it changes. */
export abstract class WidgetView {
  /** @param path the ids of the models around this one, with its own */
  constructor(
    protected readonly services: WidgetServices,
    readonly id: string,
    protected readonly path: readonly string[]
  ) {
    this.node = document.createElement('div');
    this.node.className = 'jp-ToJob-widget';
    services.views.add();
  }

  readonly node: HTMLElement;

  /** What of it is not shown as it is: a sentence, or null. */
  get simplified(): string | null {
    return null;
  }

  /** Whether something that is inside of it is left out. */
  get isCut(): boolean {
    return false;
  }

  /** Show the model as it is now, and what is inside of it. */
  update(changed: ReadonlySet<string> | null): void {
    const { state } = this;
    const ids = [this.id, referredId(state.layout), referredId(state.style)];
    if (changed === null || ids.some(id => id !== null && changed.has(id))) {
      this.render();
      applyLayout(this.node, this.referred('layout'));
    }
  }

  dispose(): void {
    this.node.remove();
    this.services.views.remove();
  }

  /** Show the state in the node, again and again. */
  protected abstract render(): void;

  protected get model(): WidgetModel | undefined {
    return this.services.store.get(this.id);
  }

  protected get state(): JSONObject {
    return this.model?.state ?? {};
  }

  /** The state of the model that a value refers to, such as the layout. */
  protected referred(name: string): JSONObject | undefined {
    const id = referredId(this.state[name]);
    return id === null ? undefined : this.services.store.get(id)?.state;
  }

  /** A text of the state; empty if it is none. */
  protected text(name: string): string {
    const value = this.state[name];
    return typeof value === 'string' ? value : '';
  }

  /** A number of the state. */
  protected number(name: string, otherwise: number): number {
    const value = this.state[name];
    return typeof value === 'number' && Number.isFinite(value)
      ? value
      : otherwise;
  }
}
