/** Brings JupyterLab's model of outputs up to date, at the cost of what changed. */
import type * as nbformat from '@jupyterlab/nbformat';
import type { IOutputAreaModel } from '@jupyterlab/outputarea';

/** Show the outputs in a model that shows those of before: unchanged ones are the same objects. */
export function syncOutputs(
  model: IOutputAreaModel,
  before: readonly nbformat.IOutput[],
  outputs: readonly nbformat.IOutput[]
): void {
  // The model may only append, and replace an output by one of its kind.
  if (!before.every((output, at) => isSameKind(output, outputs[at]))) {
    model.clear();
  }
  outputs.forEach((output, position) => {
    if (position >= model.length) {
      model.add(output);
    } else if (output !== before[position]) {
      model.set(position, output);
    }
  });
}

function isSameKind(
  output: nbformat.IOutput,
  other: nbformat.IOutput | undefined
): boolean {
  return (
    output.output_type === other?.output_type && output.name === other.name
  );
}
