/** JupyterLab's notebook widget as a view that cannot be run or edited. */
import { Notebook, StaticNotebook } from '@jupyterlab/notebook';

import type { NotebookServices } from './notebookServices';

export function readOnlyOptions({
  rendermime,
  editorServices,
  translator
}: NotebookServices): StaticNotebook.IOptions {
  const { factoryService, mimeTypeService } = editorServices;
  return {
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
  };
}

/** Disable the shortcuts of notebooks that can be run and edited. */
export function disableShortcuts({ node }: StaticNotebook): void {
  for (const name of ['jpKernelUser', 'jpUndoer', 'jpCodeRunner']) {
    delete node.dataset[name];
  }
}
