/** The head of the details: name, state, and what can be done with the job. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type { ReactElement } from 'react';

import { CommandIDs } from '../jobCommands';
import { isFinal, type Job } from '../jobs/job';
import { openJobMenu } from '../panel/menu';
import { connectionProblem, errorText } from '../ui/errors';
import { ElapsedTime, ProgressBar, useNote } from '../ui/progress';
import { statusText, usageText } from '../ui/statusText';
import type { DetailsModel } from './model';

type Props = {
  model: DetailsModel;
  commands: CommandRegistry;
  trans: TranslationBundle;
};

export function DetailsHead(props: Props): ReactElement {
  const { model, trans } = props;
  const { job, name } = model;
  return (
    <div className="jp-ToJob-details-head">
      <h2>{name}</h2>
      {job !== null && <JobStanding job={job} trans={trans} />}
      <Problem {...props} />
      {job !== null && !model.isDeleted && <Actions {...props} job={job} />}
    </div>
  );
}

function JobStanding({
  job,
  trans
}: {
  job: Job;
  trans: TranslationBundle;
}): ReactElement {
  const note = useNote({ job, trans });
  const usage = isFinal(job) ? usageText(job, trans) : null;
  return (
    <>
      <p className={`jp-ToJob-details-state jp-mod-${job.state}`}>
        <strong role="status">{statusText(job, trans)}</strong>
        {!isFinal(job) && <ElapsedTime job={job} trans={trans} />}
      </p>
      {job.state === 'running' && <ProgressBar job={job} trans={trans} />}
      {note !== null && <p className="jp-ToJob-details-note">{note}</p>}
      {usage !== null && <p>{usage}</p>}
    </>
  );
}

/** Why what is shown may be old, or is missing. */
function Problem({ model, trans }: Props): ReactElement | null {
  const { jobs, loadedJob } = model;
  const text = model.isDeleted
    ? trans.__('This job was deleted.')
    : loadedJob.error !== null
      ? errorText(loadedJob.error, trans, false)
      : connectionProblem(null, jobs.feed, trans);
  return text === null ? null : (
    <p className="jp-ToJob-notice">
      {text}{' '}
      {!model.isDeleted && (
        <button
          className="jp-mod-styled jp-mod-reject"
          onClick={() => void model.refresh()}
        >
          {trans.__('Refresh')}
        </button>
      )}
    </p>
  );
}

function Actions(props: Props & { job: Job }): ReactElement {
  const { job, commands, trans } = props;
  const { name } = job;
  const { open, watch, logs, source, submitCurrent, cancel, deliver } =
    CommandIDs;
  return (
    <div className="jp-ToJob-details-actions">
      {[open, watch, logs, source, submitCurrent, deliver, cancel]
        .filter(
          id => commands.hasCommand(id) && commands.isVisible(id, { name })
        )
        .map(id => (
          <button
            key={id}
            className={`jp-mod-styled jp-mod-${id === open ? 'accept' : 'reject'}`}
            title={commands.caption(id, { name })}
            onClick={() => void commands.execute(id, { name })}
          >
            {commands.label(id, { name })}
          </button>
        ))}
      <button
        className="jp-mod-styled jp-mod-reject"
        aria-haspopup="menu"
        onClick={event => openJobMenu(event, job, props)}
      >
        {trans.__('More…')}
      </button>
    </div>
  );
}
