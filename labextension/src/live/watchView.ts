/** The live view: a job's notebook as it runs. */
import type * as nbformat from '@jupyterlab/nbformat';

import { CommandIDs } from '../jobCommands';
import { Fold } from './fold';
import { JobView, type ViewServices } from './jobView';
import type { NotebookServices } from '../ui/notebookServices';
import { LiveNotebook } from './liveNotebook';
import { createNotices } from './notices';
import { addSafeRenderers } from './render/factories';

export function createWatchView(
  jobName: string,
  services: ViewServices,
  renderServices: NotebookServices
): JobView {
  const { jobs, journalApi, trans } = services;
  const fold = new Fold(createNotices(trans));
  const { rendermime } = renderServices;
  addSafeRenderers(rendermime, { store: fold.widgets, trans });
  const notebook = new LiveNotebook(fold, renderServices);
  const { outerNode } = notebook;
  outerNode.tabIndex = 0; // makes it scrollable by keyboard
  outerNode.setAttribute('role', 'region');
  outerNode.setAttribute('aria-label', trans.__('Cells of %1', jobName));
  const read = async (offset: number, skipped: number) => {
    const chunk = await journalApi.readJournal(jobName, offset);
    fold.skip(skipped);
    for (const record of chunk.records) {
      fold.apply(record);
      if (fold.needsNotebook) {
        const result = await journalApi.getNotebook(jobName);
        fold.setNotebook(withoutBanners(result as Content));
      }
    }
    if (!notebook.isDisposed) {
      const size = jobs.get(jobName)?.journal ?? 0;
      notebook.sync(chunk.end || chunk.next >= size);
    }
    return chunk;
  };
  const view = new JobView(jobName, services, notebook, CommandIDs.logs, read);
  // The context menu of notebooks that can be edited does not apply.
  view.node.addEventListener('contextmenu', event => event.stopPropagation());
  return view;
}

type Content = nbformat.INotebookContent;

/** Remove the cells about the run's end: the records add them again. */
function withoutBanners(notebook: Content): Content {
  const cells = notebook.cells.filter(({ metadata }) => {
    const { tags } = metadata as { tags?: string[] };
    return !tags?.includes('papermill-error-cell-tag');
  });
  return { ...notebook, cells };
}
