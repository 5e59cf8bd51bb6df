/** What the server says: problems and their hints, errors, how the sending goes. */
import type { ReactElement } from 'react';

import type { Problem } from '../api';
import { wording } from '../ui/errors';
import { size } from '../ui/format';
import type { SubmitModel } from './model';
import type { Shown } from './shown';

/** The id of what SEND is described by: why it cannot be pressed, above all. */
export const ANSWER = 'jp-ToJobDialog-answer';

/** The dialog's live regions; they are always there, or a screen reader would miss what comes. */
export function Answer({ model }: Shown): ReactElement {
  const { failure, problems, trans } = model;
  const mayScroll = failure !== null || problems.length > 0;
  return (
    <div
      className="jp-ToJobDialog-answer"
      role="group"
      aria-label={trans.__('What the server says')}
      tabIndex={mayScroll ? 0 : undefined}
    >
      <div id={ANSWER}>
        <div role="alert">
          <Failure model={model} />
        </div>
        <div role="status">
          <Problems model={model} />
          <Progress model={model} />
        </div>
      </div>
    </div>
  );
}

function Failure({ model }: Shown): ReactElement | null {
  const { failure, trans } = model;
  return failure === null ? null : (
    <p className="jp-ToJobDialog-problem jp-mod-blocking">
      {wording(failure.error, trans, failure.sent)}{' '}
      {!failure.sent && (
        <button
          className="jp-ToJobDialog-link"
          onClick={() => void model.refresh()}
        >
          {trans.__('Try again')}
        </button>
      )}
    </p>
  );
}

function Problems({ model }: Shown): ReactElement | null {
  const { problems } = model;
  return problems.length === 0 ? null : (
    <ul className="jp-ToJobDialog-problems">
      {problems.map((problem, at) => (
        <OneProblem key={`${at} ${problem.code}`} {...problem} />
      ))}
    </ul>
  );
}

function OneProblem({ message, hint, blocking }: Problem): ReactElement {
  return (
    <li
      className={`jp-ToJobDialog-problem${blocking ? ' jp-mod-blocking' : ''}`}
    >
      <span>{message}</span>{' '}
      {hint && <span className="jp-ToJobDialog-help">{hint}</span>}
    </li>
  );
}

function Progress({ model }: Shown): ReactElement | null {
  const { copying, isCallingOff, sending, trans } = model;
  if (isCallingOff) {
    return (
      <p className="jp-ToJobDialog-help">
        {trans.__('Calling off… Cancel once more to close without waiting.')}
      </p>
    );
  }
  if (copying !== null) {
    const { bytes, total } = copying;
    return (
      <label className="jp-ToJobDialog-copying">
        {trans.__('Copying files: %1 of %2', size(bytes), size(total))}
        <progress value={bytes} max={total} />
      </label>
    );
  }
  return (
    <p className="jp-ToJobDialog-help">
      {sending === null ? idleWords(model) : trans.__('Sending…')}
    </p>
  );
}

function idleWords(model: SubmitModel): string {
  const { catalog, failure, isCalledOff, isChecking, trans } = model;
  if (isCalledOff) {
    return trans.__('Called off: nothing was submitted.');
  }
  return isChecking || (catalog === null && failure === null)
    ? trans.__('Checking…')
    : '';
}
