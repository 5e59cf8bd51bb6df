/**
 * The models of ipywidgets, record by record, by the rules of
 * `job_runner/protocol/result/widgets.py`. What a cell prints while an Output widget captures
 * belongs to the widget and not to the cell.
 */
import type * as nbformat from '@jupyterlab/nbformat';
import type { JSONObject } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';

import type { Notices } from './notices';
import { Outputs } from './outputs';

/** The fields of the record `widget`. */
export type WidgetRecord = {
  id: string;
  i?: number | null;
  state: JSONObject;
  buffers?: { path: (string | number)[]; data: string }[];
};

/** One model. Only its store changes it. */
export class WidgetModel {
  readonly state: JSONObject = {};

  /** Binary values as base64, by their path in the state as JSON. */
  readonly buffers = new Map<string, string>();

  /** What an Output widget shows. */
  outputs: Outputs | null = null;

  /** The bytes of a change that was too large to be read; zero if the state is whole. */
  omitted = 0;

  /** Set the values that a record names, and the binary values among them. */
  update({ state, buffers = [] }: WidgetRecord): void {
    for (const key of this.buffers.keys()) {
      const [first] = JSON.parse(key) as string[];
      if (first === undefined || first in state) {
        this.buffers.delete(key);
      }
    }
    Object.assign(this.state, state);
    for (const { path, data } of buffers) {
      this.buffers.set(JSON.stringify(path), data);
    }
  }

  /** A binary value of the state as base64. */
  getBuffer(name: string): string | undefined {
    return this.buffers.get(JSON.stringify([name]));
  }
}

/** The models of a run. */
export class WidgetStore {
  constructor(private readonly _notices: Notices) {}

  /** These models have changed or are closed. Emitted by `flush`. */
  readonly changed = new Signal<this, ReadonlySet<string>>(this);

  get(id: string): WidgetModel | undefined {
    return this._models.get(id);
  }

  /** Whether the kernel has closed a model: nothing is to be shown of it. */
  isClosed(id: string): boolean {
    return this._closed.has(id);
  }

  /** Apply the record `widget`. */
  apply(record: WidgetRecord): void {
    const { id } = record;
    this._changedIds.add(id);
    const model = this._ensureModel(id);
    model.update(record);
    if (model.state['_model_name'] === 'OutputModel') {
      this._capture(model, record);
    }
  }

  /** Apply the record `widget_close`. */
  close(id: string): void {
    this._changedIds.add(id);
    this._closed.add(id);
    this._models.delete(id);
    this._kernelOutputs.delete(id);
    this._capturing.delete(id);
  }

  /** A change of a model was too large to be read. */
  omit(id: string, bytes: number): void {
    this._changedIds.add(id);
    this._ensureModel(id).omitted += bytes;
  }

  /** The outputs of the innermost widget that captures a cell's outputs. */
  capturing(index: number): Outputs | undefined {
    let id: string | undefined;
    for (const [each, cell] of this._capturing) {
      id = cell === index ? each : id;
    }
    if (id === undefined) {
      return undefined;
    }
    this._changedIds.add(id);
    return this._models.get(id)?.outputs ?? undefined;
  }

  /** Take note that what these outputs show has changed from elsewhere. */
  noteChange(outputs: Outputs): void {
    const id = this._owners.get(outputs);
    if (id !== undefined) {
      this._changedIds.add(id);
    }
  }

  /** Forget all models. */
  clear(): void {
    this._models.forEach((_, id) => this._changedIds.add(id));
    this._models.clear();
    this._closed.clear();
    this._kernelOutputs.clear();
    this._capturing.clear();
  }

  /** Tell what has changed since the last call. */
  flush(): void {
    if (this._changedIds.size > 0) {
      const ids = this._changedIds;
      this._changedIds = new Set();
      this.changed.emit(ids);
    }
  }

  private _ensureModel(id: string): WidgetModel {
    let model = this._models.get(id);
    if (model === undefined) {
      model = new WidgetModel();
      this._models.set(id, model);
      this._closed.delete(id);
    }
    return model;
  }

  /** Follow an Output widget: its outputs, and whether it captures those of its cell. */
  private _capture(model: WidgetModel, { id, i, state }: WidgetRecord): void {
    if ('outputs' in state || model.outputs === null) {
      this._setOutputs(model, id, state['outputs']);
    }
    if ('msg_id' in state) {
      this._capturing.delete(id);
      if (state['msg_id'] && typeof i === 'number') {
        this._capturing.set(id, i);
      }
    }
  }

  /** Set the outputs from the kernel. It does not know the captured ones, which stay. */
  private _setOutputs(model: WidgetModel, id: string, value: unknown): void {
    const outputs = (Array.isArray(value) ? value : []) as nbformat.IOutput[];
    const known = this._kernelOutputs.get(id) ?? [];
    const isContinued =
      model.outputs !== null &&
      known.every((text, at) => text === JSON.stringify(outputs[at]));
    const shown = isContinued ? model.outputs! : new Outputs(this._notices);
    for (const output of outputs.slice(isContinued ? known.length : 0)) {
      if (output?.output_type === 'stream') {
        shown.addText(joined(output.name), joined(output.text));
      } else if (typeof output?.output_type === 'string') {
        shown.add(output);
      }
    }
    model.outputs = shown;
    this._owners.set(shown, id);
    this._kernelOutputs.set(
      id,
      outputs.map(output => JSON.stringify(output))
    );
  }

  private readonly _models = new Map<string, WidgetModel>();
  private readonly _closed = new Set<string>();
  /** Of an Output widget, the outputs that the kernel has set, as JSON. */
  private readonly _kernelOutputs = new Map<string, string[]>();
  /** The widgets that capture, and the cells whose outputs they capture. */
  private readonly _capturing = new Map<string, number>();
  /** The Output widgets by what they show. */
  private readonly _owners = new WeakMap<Outputs, string>();
  private _changedIds = new Set<string>();
}

function joined(text: unknown): string {
  return Array.isArray(text)
    ? text.join('')
    : typeof text === 'string'
      ? text
      : '';
}
