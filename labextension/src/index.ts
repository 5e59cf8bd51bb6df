/**
 * Jupyter to Job in the browser: a list of small plugins, each of which can be switched off alone.
 */
import files from './plugins/files';
import jobs from './plugins/jobs';
import notifications from './plugins/notifications';
import submit from './plugins/submit';

export { ApiError } from './client';
export { type Job, JOB_EVENT, type Submission } from './job';
export { IJobs } from './tokens';

export default [jobs, submit, notifications, files];
