/**
 * Provides the model and keeps it true: it listens to the server's events, and asks for the list
 * only when events may have been missed. Nothing polls.
 */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import type { Event } from '@jupyterlab/services';

import { Client } from '../client';
import { type Job, JOB_EVENT } from '../job';
import { Jobs } from '../jobs';
import { IJobs } from '../tokens';

const plugin: JupyterFrontEndPlugin<IJobs> = {
  id: 'jupyter-to-job:jobs',
  description: 'Submits notebooks as jobs and follows the jobs of this server.',
  autoStart: true,
  provides: IJobs,
  activate: ({ serviceManager }: JupyterFrontEnd): IJobs => {
    const jobs = new Jobs(new Client(serviceManager.serverSettings));
    serviceManager.events.stream.connect((_, emission: Event.Emission) => {
      if (emission.schema_id === JOB_EVENT) {
        jobs.observe(emission as unknown as Job);
      }
    });
    const catchUp = () =>
      void jobs.refresh().catch(error => {
        // No reason to disturb anyone before they ask for something: the button tells it then.
        console.warn('jupyter-to-job: the jobs could not be listed', error);
      });
    // A computer that slept, or a tab that was frozen, may have lost its event stream meanwhile.
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) {
        catchUp();
      }
    });
    catchUp();
    return jobs;
  }
};

export default plugin;
