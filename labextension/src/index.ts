/** The JupyterLab extension: a list of small plugins, each of which can be disabled alone. */
import dialog from './plugins/dialog';
import fileMenu from './plugins/fileMenu';
import files from './plugins/files';
import jobs from './plugins/jobs';
import live from './plugins/live';
import notifications from './plugins/notifications';
import panel from './plugins/panel';
import submit from './plugins/submit';

export { ApiError, type FailureKind } from './jobs/client';
export type { Changes, Choices, Job, Submission } from './jobs/job';
export type { INotebookSource } from './source';
export { IJobs, ISubmitDialog } from './tokens';

export default [
  jobs,
  dialog,
  submit,
  fileMenu,
  notifications,
  panel,
  live,
  files
];
