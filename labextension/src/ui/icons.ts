/** The extension's icons. */
import { LabIcon } from '@jupyterlab/ui-components';

import jobs from '../../style/icons/jobs.svg';
import submit from '../../style/icons/submit.svg';

export const submitIcon = new LabIcon({
  name: 'jupyter-to-job:submit',
  svgstr: submit
});

export const jobsIcon = new LabIcon({
  name: 'jupyter-to-job:jobs',
  svgstr: jobs
});
