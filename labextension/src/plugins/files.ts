/** Refreshes the file browser when a result is delivered, before its next poll. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { PathExt } from '@jupyterlab/coreutils';
import { IFileBrowserFactory } from '@jupyterlab/filebrowser';

import type { Job } from '../jobs/job';
import { IJobs } from '../tokens';
import { pressGate } from '../ui/press';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-to-job:files',
  description: 'Refreshes the file browser when a result was delivered.',
  autoStart: true,
  requires: [IJobs],
  optional: [IFileBrowserFactory],
  activate: (
    { serviceManager: { contents } }: JupyterFrontEnd,
    jobs: IJobs,
    browsers: IFileBrowserFactory | null
  ): void => {
    if (browsers === null) {
      return; // some pages of Notebook 7 have no file browser
    }
    const undelivered = new Set<string>();
    jobs.changed.connect((_, { name, delivery }: Job) => {
      // A job that was delivered before this page loaded it is nothing new.
      if (delivery.state !== 'delivered') {
        undelivered.add(name);
      } else if (undelivered.delete(name)) {
        const folder = PathExt.dirname(delivery.path ?? '');
        browsers.tracker.forEach(({ model }) => {
          if (contents.localPath(model.path) === folder) {
            pressGate.run(() => void model.refresh());
          }
        });
      }
    });
  }
};

export default plugin;
