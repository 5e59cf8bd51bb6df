/**
 * Places widgets in the page, whichever application it belongs to. JupyterLab has a side bar and a
 * main area. In Notebook 7 the page of files has tabs, and a page of a notebook has room below it.
 */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { PageConfig } from '@jupyterlab/coreutils';
import { SplitPanel, TabPanel, type Widget } from '@lumino/widgets';

/** Widgets below a notebook. */
const below = new WeakSet<Widget>();

/** Add a widget to the main area, or to where this page has room. */
export function addToMainArea(
  shell: JupyterFrontEnd.IShell,
  widget: Widget,
  type: string
): void {
  const tabs = findTabs(shell);
  if (tabs !== null) {
    addTab(tabs, widget);
  } else if (isNotebook7()) {
    below.add(widget);
    shell.add(widget, 'down', { type });
  } else {
    shell.add(widget, 'main', { type });
  }
}

/** Add a widget to the left side bar, or as a tab to Notebook 7's page of files. */
export async function addToSideBar(
  { shell, restored }: Pick<JupyterFrontEnd, 'shell' | 'restored'>,
  widget: Widget,
  options: { rank: number; type: string; label: string }
): Promise<void> {
  const { label, rank, type } = options;
  if (PageConfig.getOption('notebookPage') !== 'tree') {
    shell.add(widget, 'left', { rank, type });
    return;
  }
  await restored; // The tabs come with a plugin that may be activated later.
  const tabs = findTabs(shell);
  if (tabs === null) {
    shell.add(widget, 'left', { rank, type });
  } else {
    widget.title.label = label;
    addTab(tabs, widget);
  }
}

/** Bring a widget to the front and give it the focus. */
export function activate(shell: JupyterFrontEnd.IShell, widget: Widget): void {
  const tabs = findTabs(shell);
  if (tabs?.widgets.includes(widget)) {
    tabs.currentWidget = widget;
    widget.activate();
  } else {
    shell.activateById(widget.id);
    if (below.has(widget)) {
      makeRoom(widget);
    }
  }
}

/** Give the area below a notebook a quarter of the page, where it has no height yet. */
function makeRoom({ node, parent }: Widget): void {
  let ancestor = parent;
  while (
    ancestor !== null &&
    !(ancestor instanceof SplitPanel && ancestor.orientation === 'vertical')
  ) {
    ancestor = ancestor.parent;
  }
  if (ancestor instanceof SplitPanel && node.clientHeight === 0) {
    ancestor.setRelativeSizes([3, 1]);
  }
}

/** The tabs of Notebook 7's page of files; null on all other pages. */
function findTabs(shell: JupyterFrontEnd.IShell): TabPanel | null {
  const [widget] =
    PageConfig.getOption('notebookPage') === 'tree'
      ? [...shell.widgets('main')]
      : [];
  return widget instanceof TabPanel ? widget : null;
}

/** Add a tab; Notebook 7 shows only those whose titles are added to its own bar, too. */
function addTab(tabs: TabPanel, widget: Widget): void {
  tabs.addWidget(widget);
  tabs.tabBar.addTab(widget.title);
}

function isNotebook7(): boolean {
  return PageConfig.getOption('notebookPage') !== '';
}
