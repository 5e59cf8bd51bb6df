/** The notebook as it was frozen: JupyterLab's notebook widget, read-only and untrusted. */
import type * as nbformat from '@jupyterlab/nbformat';
import { NotebookModel, StaticNotebook } from '@jupyterlab/notebook';

import type { NotebookServices } from '../ui/notebookServices';
import { disableShortcuts, readOnlyOptions } from '../ui/readOnlyNotebook';

/**
 * A cell that cannot be edited. Its outputs are sanitized, whatever the file says: nobody has
 * checked a signature.
 */
export function toReadOnly(cell: nbformat.ICell): nbformat.ICell {
  const metadata: nbformat.ICell['metadata'] = {
    ...cell.metadata,
    editable: false,
    deletable: false
  };
  delete metadata.trusted;
  return { ...cell, metadata };
}

class SnapshotNotebook extends StaticNotebook {
  override dispose(): void {
    const { model } = this;
    super.dispose();
    model?.dispose();
  }
}

export function createSnapshotNotebook(
  content: nbformat.INotebookContent,
  services: NotebookServices,
  label: string
): StaticNotebook {
  const widget = new SnapshotNotebook(readOnlyOptions(services));
  const { outerNode } = widget;
  outerNode.tabIndex = 0; // makes it scrollable by keyboard
  outerNode.setAttribute('role', 'region');
  outerNode.setAttribute('aria-label', label);
  disableShortcuts(widget);
  const model = new NotebookModel({ translator: services.translator });
  model.fromJSON({ ...content, cells: content.cells.map(toReadOnly) });
  widget.model = model;
  return widget;
}
