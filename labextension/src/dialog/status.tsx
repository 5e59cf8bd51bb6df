/** The status area: problems with their hints, errors, and the progress of sending. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReactElement } from 'react';

import type { Problem } from '../api';
import { errorText } from '../ui/errors';
import { formatBytes } from '../ui/format';
import { explainCode } from '../ui/serverText';
import type { SubmitModel } from './model';
import type { ModelProps } from './section';
import { sweepText } from './sweepSection';

/** The id of the area, which describes the SEND button. */
export const STATUS_ID = 'jp-ToJobDialog-answer';

/**
 * The dialog's live regions. They are always rendered, because screen readers miss regions that
 * appear with their content.
 */
export function StatusArea({ model }: ModelProps): ReactElement {
  const { failure, problems, trans } = model;
  const mayScroll = failure !== null || problems.length > 0;
  return (
    <div
      className="jp-ToJobDialog-answer"
      role="group"
      aria-label={trans.__('What the server says')}
      tabIndex={mayScroll ? 0 : undefined}
    >
      <div id={STATUS_ID}>
        <div role="alert">
          <RequestError model={model} />
        </div>
        <div role="status">
          <ProblemList model={model} />
          <SweepCount model={model} />
          <SendProgress model={model} />
        </div>
      </div>
    </div>
  );
}

function RequestError({ model }: ModelProps): ReactElement | null {
  const { failure, trans } = model;
  return failure === null ? null : (
    <p className="jp-ToJobDialog-problem jp-mod-blocking">
      {errorText(failure.error, trans, failure.isSubmission)}{' '}
      {!failure.isSubmission && (
        <button
          className="jp-ToJobDialog-link"
          onClick={() => void model.refreshCatalog()}
        >
          {trans.__('Try again')}
        </button>
      )}
    </p>
  );
}

function ProblemList({ model }: ModelProps): ReactElement | null {
  const { problems, trans } = model;
  return problems.length === 0 ? null : (
    <ul className="jp-ToJobDialog-problems">
      {problems.map((problem, index) => (
        <ProblemItem
          key={`${index} ${problem.code}`}
          problem={problem}
          trans={trans}
        />
      ))}
    </ul>
  );
}

type ProblemProps = { problem: Problem; trans: TranslationBundle };

function ProblemItem({ problem, trans }: ProblemProps): ReactElement {
  const { blocking, code, hint, message } = problem;
  return (
    <li
      className={`jp-ToJobDialog-problem${blocking ? ' jp-mod-blocking' : ''}`}
    >
      <span>{explainCode(code, message, trans)}</span>{' '}
      {hint && <span className="jp-ToJobDialog-help">{hint}</span>}
    </li>
  );
}

/** How many jobs will be sent, if several. */
function SweepCount({ model }: ModelProps): ReactElement | null {
  const text = sweepText(model.sweep, model.trans);
  return text === null ? null : <p className="jp-ToJobDialog-count">{text}</p>;
}

function SendProgress({ model }: ModelProps): ReactElement | null {
  const { copyProgress, isWithdrawing, sendingKey, trans } = model;
  if (isWithdrawing) {
    return (
      <p className="jp-ToJobDialog-help">
        {trans.__('Calling off… Cancel once more to close without waiting.')}
      </p>
    );
  }
  if (copyProgress !== null && copyProgress.total > 0) {
    const { bytes, total } = copyProgress;
    return (
      <label className="jp-ToJobDialog-copying">
        {trans.__(
          'Copying files: %1 of %2',
          formatBytes(bytes),
          formatBytes(total)
        )}
        <progress value={bytes} max={total} />
      </label>
    );
  }
  return (
    <p className="jp-ToJobDialog-help">
      {sendingKey === null ? idleText(model) : trans.__('Sending…')}
    </p>
  );
}

function idleText(model: SubmitModel): string {
  const { catalog, failure, isWithdrawn, isChecking, sweep, trans } = model;
  if (isWithdrawn) {
    // An earlier try may have recorded jobs of a sweep before its answer was lost.
    return sweep.isActive
      ? trans.__('Called off.')
      : trans.__('Called off: nothing was submitted.');
  }
  return isChecking || (catalog === null && failure === null)
    ? trans.__('Checking…')
    : '';
}
