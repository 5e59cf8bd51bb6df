/** The icon of a job's state: a shape of its own for each, as colours alone tell nothing to some. */
import {
  checkIcon,
  circleEmptyIcon,
  closeIcon,
  type LabIcon,
  runIcon,
  stopIcon
} from '@jupyterlab/ui-components';
import type { ReactElement } from 'react';

import type { Job } from '../jobs/job';

const ICONS: Record<Job['state'], LabIcon> = {
  queued: circleEmptyIcon,
  starting: runIcon,
  running: runIcon,
  succeeded: checkIcon,
  failed: closeIcon,
  cancelled: stopIcon
};

export function StateIcon({ state }: Pick<Job, 'state'>): ReactElement {
  const Icon = ICONS[state];
  return (
    <Icon.react className="jp-ToJob-state" tag="span" aria-hidden="true" />
  );
}
