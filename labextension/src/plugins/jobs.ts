/**
 * Provides the job model and keeps it up to date: it listens to the server's events, and loads the
 * list only when events may have been missed. Nothing polls.
 */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import type { Event } from '@jupyterlab/services';

import { ChangedJobs } from '../jobs/changedJobs';
import { Client } from '../jobs/client';
import { EventConnection } from '../jobs/eventConnection';
import {
  type CopyProgress,
  DELETED_EVENT,
  type Job,
  JOB_EVENT,
  SUBMISSION_EVENT
} from '../jobs/job';
import { Jobs } from '../jobs/model';
import { IPreferences } from '../settings/preferences';
import { IJobs } from '../tokens';

const plugin: JupyterFrontEndPlugin<IJobs> = {
  id: 'jupyter-to-job:jobs',
  description: 'Submits notebooks as jobs and follows the jobs of this server.',
  autoStart: true,
  provides: IJobs,
  optional: [IPreferences],
  activate: (
    { serviceManager }: JupyterFrontEnd,
    preferences: IPreferences | null
  ): IJobs => {
    const settings = serviceManager.serverSettings;
    const client = new Client(
      settings,
      () => preferences?.current.resultsFolder ?? ''
    );
    const jobs = new Jobs(client);
    const connection = new EventConnection(settings);
    const changedJobs = new ChangedJobs(client, jobs);
    connection.eventReceived.connect((_, emission) =>
      handleEvent(jobs, changedJobs, emission)
    );
    // Load the list after events have started, so that nothing is missed in between.
    connection.opened.connect(() => {
      jobs.feed = 'live';
      void jobs.refresh();
    });
    connection.closed.connect(() => {
      const isFirst = jobs.feed !== 'lost';
      jobs.feed = 'lost';
      if (isFirst) {
        void jobs.refresh();
        void checkPermission(jobs, connection, client);
      }
    });
    // After sleep, or in a frozen tab, the event connection may be dead without a close event.
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) {
        void jobs.refresh();
      }
    });
    // The event manager's next retry may be half a minute away.
    window.addEventListener('online', () => {
      if (jobs.feed === 'lost') {
        connection.connect();
      }
    });
    // A request succeeded, so connecting can succeed, too.
    jobs.conditionChanged.connect(() => {
      if (jobs.feed === 'lost' && !jobs.isBusy && jobs.error === null) {
        connection.connect();
      }
    });
    connection.connect();
    return jobs;
  }
};

export default plugin;

function handleEvent(
  jobs: Jobs,
  changedJobs: ChangedJobs,
  emission: Event.Emission
): void {
  const { schema_id, ...payload } = emission;
  // JupyterLab adds `__timestamp__` and the like to what the schema describes.
  const fields: unknown = Object.fromEntries(
    Object.entries(payload).filter(([key]) => !key.startsWith('_'))
  );
  if (schema_id === JOB_EVENT) {
    void changedJobs.add((fields as Pick<Job, 'name'>).name);
  } else if (schema_id === DELETED_EVENT) {
    jobs.remove((fields as Pick<Job, 'name'>).name);
  } else if (schema_id === SUBMISSION_EVENT) {
    jobs.copyProgressed.emit(fields as CopyProgress);
  }
}

/** Ask if this user may subscribe at all, and stop retrying if not. */
async function checkPermission(
  jobs: Jobs,
  connection: EventConnection,
  client: Client
): Promise<void> {
  const mayListen = await client.getHealth().then(
    ({ events }) => events,
    () => true
  );
  if (!mayListen) {
    connection.disconnect();
    jobs.feed = 'forbidden';
  }
}
