/** The notebook as it was frozen: JupyterLab's notebook widget, read-only and untrusted. */
import type { IEditorServices } from '@jupyterlab/codeeditor';
import type * as nbformat from '@jupyterlab/nbformat';
import { Notebook, NotebookModel, StaticNotebook } from '@jupyterlab/notebook';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { ITranslator } from '@jupyterlab/translation';

export type NotebookServices = {
  rendermime: IRenderMimeRegistry;
  editorServices: IEditorServices;
  translator: ITranslator;
};

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
  { rendermime, editorServices, translator }: NotebookServices,
  label: string
): StaticNotebook {
  const { factoryService, mimeTypeService } = editorServices;
  const widget = new SnapshotNotebook({
    rendermime,
    translator,
    contentFactory: new Notebook.ContentFactory({
      editorFactory: factoryService.newInlineEditor
    }),
    mimeTypeService,
    notebookConfig: {
      ...StaticNotebook.defaultNotebookConfig,
      windowingMode: 'defer',
      scrollPastEnd: false
    }
  });
  const { outerNode } = widget;
  outerNode.tabIndex = 0; // makes it scrollable by keyboard
  outerNode.setAttribute('role', 'region');
  outerNode.setAttribute('aria-label', label);
  // Disable the shortcuts of notebooks that can be run and edited.
  for (const name of ['jpKernelUser', 'jpUndoer', 'jpCodeRunner']) {
    delete widget.node.dataset[name];
  }
  const model = new NotebookModel({ translator });
  model.fromJSON({ ...content, cells: content.cells.map(toReadOnly) });
  widget.model = model;
  return widget;
}
