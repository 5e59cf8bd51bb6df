/** A line above the cells of a result: whose it is, and the ways back to the source. */
import { ReactWidget } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReactElement } from 'react';

type Props = {
  job: string;
  /** Whether all cells ended, one failed, or one was stopped because the job was cancelled. */
  end: 'whole' | 'failed' | 'stopped';
  openSource: () => void;
  bringBack: () => void;
  trans: TranslationBundle;
};

/** Create the line. */
export function createResultBar(props: Props): ReactWidget {
  const { job, trans } = props;
  const bar = ReactWidget.create(<ResultBar {...props} />);
  bar.addClass('jp-ToJob-resultBar');
  bar.node.setAttribute('role', 'region');
  bar.node.setAttribute('aria-label', trans.__('Result of %1', job));
  return bar;
}

function ResultBar(props: Props): ReactElement {
  const { job, end, openSource, bringBack, trans } = props;
  const labels = {
    whole: trans.__('Open Source'),
    failed: trans.__('Failed Cell in the Source'),
    stopped: trans.__('Stopped Cell in the Source')
  };
  return (
    <>
      <span>{trans.__('Result of %1', job)}</span>
      <button className="jp-ToJob-action" onClick={openSource}>
        {labels[end]}
      </button>
      <button className="jp-ToJob-action" onClick={bringBack}>
        {trans.__('Bring Outputs Back…')}
      </button>
    </>
  );
}
