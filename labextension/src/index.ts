/** The JupyterLab extension: a list of small plugins, each of which can be disabled alone. */
import cleanUp from './plugins/cleanUp';
import desktop from './plugins/desktop';
import details from './plugins/details';
import dialog from './plugins/dialog';
import fileMenu from './plugins/fileMenu';
import files from './plugins/files';
import jobs from './plugins/jobs';
import launcher from './plugins/launcher';
import live from './plugins/live';
import missed from './plugins/missed';
import notifications from './plugins/notifications';
import panel from './plugins/panel';
import resultNotebooks from './plugins/resultNotebooks';
import results from './plugins/results';
import settings from './plugins/settings';
import status from './plugins/status';
import submit from './plugins/submit';
import table from './plugins/table';

export { ApiError, type FailureKind } from './jobs/client';
export type { Changes, Choices, Job, Submission } from './jobs/job';
export type { SweepFields, SweepSubmission, SweptJobs } from './jobs/sweep';
export type { INotebookSource } from './source';
export { IJobs, ISubmitDialog } from './tokens';

export default [
  settings,
  jobs,
  dialog,
  submit,
  fileMenu,
  notifications,
  desktop,
  missed,
  panel,
  table,
  live,
  results,
  resultNotebooks,
  details,
  files,
  status,
  launcher,
  cleanUp
];
