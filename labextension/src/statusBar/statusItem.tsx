/** The item of the status bar: how many jobs run and wait. A click opens them. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { ReactElement } from 'react';

import { jobsIcon } from '../ui/icons';
import { useModel } from '../ui/useModel';
import type { JobCounts } from './jobCounts';

export type StatusItemProps = {
  counts: JobCounts;
  trans: TranslationBundle;
  onOpen: () => void;
};

export function createStatusItem(props: StatusItemProps): ReactWidget {
  const item = ReactWidget.create(<StatusItem {...props} />);
  item.addClass('jp-ToJob-status');
  return item;
}

function StatusItem({ counts, trans, onOpen }: StatusItemProps): ReactElement {
  useModel(counts);
  const text = statusItemText(counts, trans);
  return (
    <button
      className="jp-ToJob-statusButton"
      title={trans.__('Open the list of jobs')}
      aria-label={trans.__('Jobs: %1', text)}
      onClick={onOpen}
    >
      <jobsIcon.react tag="span" aria-hidden="true" />
      <span>{text}</span>
    </button>
  );
}

/** `2 running, 3 waiting`; a number that is zero is left out. */
export function statusItemText(
  { running, waiting }: Pick<JobCounts, 'running' | 'waiting'>,
  trans: TranslationBundle
): string {
  return [
    running > 0 && trans.__('%1 running', running),
    waiting > 0 && trans.__('%1 waiting', waiting)
  ]
    .filter(Boolean)
    .join(trans.__(', '));
}
