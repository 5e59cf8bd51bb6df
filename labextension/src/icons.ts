/** The extension's icons. */
import { LabIcon } from '@jupyterlab/ui-components';

import submit from '../style/icons/submit.svg';

/** A notebook on its way: the icon of SUBMIT JOB. */
export const submitIcon = new LabIcon({
  name: 'jupyter-to-job:submit',
  svgstr: submit
});
