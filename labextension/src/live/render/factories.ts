/**
 * Renderers for outputs that are not trusted, where JupyterLab's own show nothing, or too little:
 * ipywidgets, SVG and styled tables.
 */
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';

import { SafeHTML, SafeSVG } from './safeHtml';
import { WIDGET_VIEW, WidgetOutput } from './widgetOutput';
import type { WidgetServices } from './widgetView';

/** JupyterLab's ranks of these types; a widget goes first. */
const RANKS = { widget: 10, html: 50, svg: 80 };

/** Add the renderers to a registry, which must be a copy of JupyterLab's. */
export function addSafeRenderers(
  rendermime: IRenderMimeRegistry,
  services: Omit<WidgetServices, 'rendermime'>
): void {
  const { trans } = services;
  rendermime.addFactory(
    {
      safe: true,
      mimeTypes: [WIDGET_VIEW],
      createRenderer: () => new WidgetOutput({ ...services, rendermime })
    },
    RANKS.widget
  );
  rendermime.addFactory(
    {
      safe: true,
      mimeTypes: ['text/html'],
      createRenderer: options => new SafeHTML(options, trans)
    },
    RANKS.html
  );
  rendermime.addFactory(
    {
      safe: true,
      mimeTypes: ['image/svg+xml'],
      createRenderer: options => new SafeSVG(options, trans)
    },
    RANKS.svg
  );
}
