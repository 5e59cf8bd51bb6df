/**
 * Provides the model and keeps it true: it listens to the server's events, and asks for the list
 * only when events may have been missed. Nothing polls.
 */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import type { Event } from '@jupyterlab/services';

import { Client } from '../jobs/client';
import { EventLine } from '../jobs/eventConnection';
import {
  type Copying,
  DELETED_EVENT,
  type Job,
  JOB_EVENT,
  SUBMISSION_EVENT
} from '../jobs/job';
import { Jobs } from '../jobs/model';
import { IJobs } from '../tokens';

const plugin: JupyterFrontEndPlugin<IJobs> = {
  id: 'jupyter-to-job:jobs',
  description: 'Submits notebooks as jobs and follows the jobs of this server.',
  autoStart: true,
  provides: IJobs,
  activate: ({ serviceManager }: JupyterFrontEnd): IJobs => {
    const settings = serviceManager.serverSettings;
    const client = new Client(settings);
    const jobs = new Jobs(client);
    const line = new EventLine(settings);
    line.heard.connect((_, emission) => hear(jobs, emission));
    // The list is asked for when events come: so nothing lies between the two.
    line.opened.connect(() => {
      jobs.feed = 'live';
      void jobs.refresh();
    });
    line.closed.connect(() => {
      const isFirst = jobs.feed !== 'lost';
      jobs.feed = 'lost';
      if (isFirst) {
        void jobs.refresh();
        void learnWhy(jobs, line, client);
      }
    });
    // A computer that slept, or a tab that was frozen, may have lost its event stream unnoticed.
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) {
        void jobs.refresh();
      }
    });
    // The next try of itself may be half a minute away.
    window.addEventListener('online', () => {
      if (jobs.feed === 'lost') {
        line.connect();
      }
    });
    // Who could ask again with success is connected again at once, too.
    jobs.conditionChanged.connect(() => {
      if (jobs.feed === 'lost' && !jobs.isBusy && jobs.error === null) {
        line.connect();
      }
    });
    line.connect();
    return jobs;
  }
};

export default plugin;

/** Take note of what an event says. */
function hear(jobs: Jobs, emission: Event.Emission): void {
  const { schema_id, ...said } = emission;
  const entries = Object.entries(said).filter(([key]) => !key.startsWith('_'));
  const fields: unknown = Object.fromEntries(entries);
  if (schema_id === JOB_EVENT) {
    jobs.observe(fields as Job);
  } else if (schema_id === DELETED_EVENT) {
    jobs.forget((fields as Pick<Job, 'name'>).name);
  } else if (schema_id === SUBMISSION_EVENT) {
    jobs.tellCopying(fields as Copying);
  }
}

/** Ask why no events come: who may not have them is not to try for ever. */
async function learnWhy(
  jobs: Jobs,
  line: EventLine,
  client: Client
): Promise<void> {
  const mayListen = await client.health().then(
    ({ events }) => events,
    () => true
  );
  if (!mayListen) {
    line.disconnect();
    jobs.feed = 'barred';
  }
}
