/**
 * Renderers for outputs that are not trusted, where JupyterLab's own show nothing, or too little:
 * ipywidgets, SVG and styled tables.
 */
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';

import { SafeHTML, SafeSVG } from './safeHtml';
import { WIDGET_VIEW, WidgetOutput } from './widgetOutput';
import { ViewCount } from './viewCount';
import type { WidgetServices } from './widgetView';

type Shared = Pick<WidgetServices, 'store' | 'trans'>;

/** JupyterLab's ranks of these types; a widget goes first. */
const RANKS = { widget: 10, html: 50, svg: 80 };

/** Add the renderers to a registry, which must be a copy of JupyterLab's. */
export function addSafeRenderers(
  rendermime: IRenderMimeRegistry,
  services: Shared
): void {
  const { trans } = services;
  addWidgetRenderer(rendermime, services);
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

/**
 * Add the renderer of ipywidgets.
 *
 * @param path the ids of the models around the outputs that it renders
 * @param views those of the output that these belong to; without it they are outputs of their own
 */
function addWidgetRenderer(
  rendermime: IRenderMimeRegistry,
  services: Shared,
  path: readonly string[] = [],
  views?: ViewCount
): void {
  const createRenderer = () => {
    const count = views ?? new ViewCount();
    const rendermimeInside = (inner: readonly string[]) => {
      const copy = rendermime.clone();
      addWidgetRenderer(copy, services, inner, count);
      return copy;
    };
    return new WidgetOutput(
      { ...services, rendermime, views: count, rendermimeInside },
      path
    );
  };
  rendermime.addFactory(
    { safe: true, mimeTypes: [WIDGET_VIEW], createRenderer },
    RANKS.widget
  );
}
