/** A result that is too large for a page, without its outputs: its code and text. */
import type * as nbformat from '@jupyterlab/nbformat';
import { PanelLayout, Widget } from '@lumino/widgets';

import { CommandIDs } from '../jobCommands';
import { errorText } from '../ui/errors';
import { Fold } from './fold';
import type { ViewServices } from './jobView';
import type { NotebookServices } from '../ui/notebookServices';
import { LiveNotebook } from './liveNotebook';
import { createNotices, type Notices } from './notices';

/** The MIME type of what the server puts in the place of a cell's outputs. */
const OMITTED = 'application/vnd.jupyter-to-job.omitted+json';

/** Shows the code and text of one result. */
export class CodeView extends Widget {
  constructor(
    readonly jobName: string,
    heading: Widget,
    notebook: Widget
  ) {
    super();
    this.addClass('jp-ToJob-watch');
    const layout = (this.layout = new PanelLayout());
    layout.addWidget(heading);
    layout.addWidget(notebook);
  }
}

export function createCodeView(
  jobName: string,
  services: ViewServices,
  renderServices: NotebookServices
): CodeView {
  const { journalApi, trans } = services;
  const notices = createNotices(trans);
  const fold = new Fold(notices);
  const notebook = new LiveNotebook(fold, renderServices);
  const { outerNode } = notebook;
  outerNode.tabIndex = 0; // makes it scrollable by keyboard
  outerNode.setAttribute('role', 'region');
  outerNode.setAttribute('aria-label', trans.__('Cells of %1', jobName));
  const { heading, status } = createHeading(jobName, services);
  const view = new CodeView(jobName, heading, notebook);
  view.node.addEventListener('contextmenu', event => event.stopPropagation());
  journalApi
    .getNotebook(jobName, false)
    .then(content => {
      if (!view.isDisposed) {
        showNotebook(fold, content as nbformat.INotebookContent, notices);
        notebook.sync(false);
        status.textContent = trans.__(
          'The code and text of %1, read-only, and without its outputs.',
          jobName
        );
      }
    })
    .catch((error: unknown) => {
      status.textContent = errorText(error, trans, false);
    });
  return view;
}

function showNotebook(
  fold: Fold,
  content: nbformat.INotebookContent,
  notices: Notices
): void {
  fold.setNotebook(content);
  content.cells.forEach((cell, index) => {
    const { outputs, execution_count } = cell as nbformat.ICodeCell;
    const live = fold.cells[index]!;
    live.executionCount = execution_count ?? null;
    for (const { data } of outputs ?? []) {
      const bytes = (data as Record<string, { bytes?: number }>)?.[OMITTED];
      live.outputs.addText('stdout', notices.omitted(bytes?.bytes ?? 0));
    }
  });
}

function createHeading(
  name: string,
  { commands, trans }: ViewServices
): { heading: Widget; status: HTMLElement } {
  const heading = new Widget();
  heading.addClass('jp-ToJob-live-heading');
  const standing = document.createElement('div');
  standing.className = 'jp-ToJob-live-standing';
  const status = document.createElement('p');
  status.setAttribute('role', 'status');
  status.textContent = trans.__('Loading…');
  const button = document.createElement('button');
  button.className = 'jp-mod-styled jp-mod-reject';
  button.textContent = trans.__('Open Result');
  button.addEventListener('click', () => {
    void commands.execute(CommandIDs.open, { name });
  });
  standing.append(status, button);
  heading.node.append(standing);
  return { heading, status };
}
