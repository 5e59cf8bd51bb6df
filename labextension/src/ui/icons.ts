/** The extension's icons. */
import { LabIcon } from '@jupyterlab/ui-components';

import jobs from '../../style/icons/jobs.svg';
import submit from '../../style/icons/submit.svg';

/** A notebook on its way: the icon of SUBMIT JOB. */
export const submitIcon = new LabIcon({
  name: 'jupyter-to-job:submit',
  svgstr: submit
});

/** Notebooks on their way, in a list: the icon of the jobs panel. */
export const jobsIcon = new LabIcon({
  name: 'jupyter-to-job:jobs',
  svgstr: jobs
});
