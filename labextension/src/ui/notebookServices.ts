/** What draws the cells of a job's notebook in a view. */
import type { IEditorServices } from '@jupyterlab/codeeditor';
import {
  type IRenderMimeRegistry,
  RenderMimeRegistry
} from '@jupyterlab/rendermime';
import type { Contents } from '@jupyterlab/services';
import type { ITranslator } from '@jupyterlab/translation';

export type NotebookServices = {
  rendermime: IRenderMimeRegistry;
  editorServices: IEditorServices;
  translator: ITranslator;
};

/** Resolve relative links of a notebook against its source's folder. */
export function resolveLinks(
  services: NotebookServices,
  contents: Contents.IManager,
  path: string
): NotebookServices {
  const resolver = new RenderMimeRegistry.UrlResolver({ path, contents });
  return { ...services, rendermime: services.rendermime.clone({ resolver }) };
}
