/** A line of the list that shows a job. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ellipsesIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import { memo, type MouseEvent, type ReactElement } from 'react';

import { CommandIDs, mainCommandOf } from '../jobCommands';
import { fullName, isFinal, isWaitingOnCluster, type Job } from '../jobs/job';
import type { IJobs } from '../tokens';
import { formatExactly, formatMoment } from '../ui/format';
import {
  ElapsedTime,
  type JobTextProps,
  ProgressBar,
  useNote
} from '../ui/progress';
import { statusText, usageText } from '../ui/statusText';
import { openJobMenu } from './menu';
import { Remark } from './remark';
import { StateIcon } from '../ui/stateIcon';
import { WaitDetails } from './waitDetails';

export type RowServices = {
  commands: CommandRegistry;
  trans: TranslationBundle;
};

type Props = RowServices & {
  jobs: IJobs;
  job: Job;
  isActive: boolean;
  /** The parameters that tell the job from others of its notebook. */
  difference: string;
  /** The day on which it is shown: times of other days have their date. */
  day: string;
};

/** A job's line. It renders again only if the job, its being active or its note changes. */
export const JobRow = memo(function JobRow(props: Props): ReactElement {
  const { jobs, job, trans, commands, isActive, difference } = props;
  const { name, state } = job;
  const tabIndex = isActive ? 0 : -1;
  const mainCommand = mainCommandOf(job, commands);
  const note = useNote({ job, trans });
  const usage = isFinal(job) ? usageText(job, trans) : null;
  const onMenu = (event: MouseEvent<HTMLElement>) =>
    openJobMenu(event, job, props);
  return (
    <article
      className={`jp-ToJob-row jp-mod-${state}`}
      aria-label={name}
      onContextMenu={onMenu}
    >
      <StateIcon state={state} />
      <div className="jp-ToJob-what">
        <button
          className="jp-ToJob-name"
          data-main
          tabIndex={tabIndex}
          title={`${fullName(job)}\n${commands.caption(mainCommand, { name })}`}
          onClick={() => void commands.execute(mainCommand, { name })}
        >
          {name}
        </button>
        <JobFacts job={job} trans={trans} difference={difference} />
        {note !== null && (
          <Remark text={note} name={name} tabIndex={tabIndex} trans={trans} />
        )}
        {isWaitingOnCluster(job) && (
          <WaitDetails
            jobs={jobs}
            job={job}
            trans={trans}
            tabIndex={tabIndex}
          />
        )}
        {usage !== null && <p className="jp-ToJob-receipt">{usage}</p>}
        <RowActions {...props} tabIndex={tabIndex} onMenu={onMenu} />
      </div>
    </article>
  );
});

function JobFacts({
  job,
  trans,
  difference
}: JobTextProps & { difference: string }): ReactElement {
  return (
    <>
      <p className="jp-ToJob-standing">
        <strong>{statusText(job, trans)}</strong>
        {!isFinal(job) && <ElapsedTime job={job} trans={trans} />}
        <SubmissionTime job={job} trans={trans} />
      </p>
      {job.state === 'running' && <ProgressBar job={job} trans={trans} />}
      <p className="jp-ToJob-origin">
        <span>{job.notebook}</span>{' '}
        <span>{`${job.flavor} · ${job.device}`}</span>
      </p>
      {difference !== '' && (
        <p className="jp-ToJob-difference" title={difference}>
          {difference}
        </p>
      )}
    </>
  );
}

function SubmissionTime({ job, trans }: JobTextProps): ReactElement | null {
  const { submitted } = job;
  return submitted === null ? null : (
    <time
      className="jp-ToJob-time"
      dateTime={submitted}
      title={trans.__('Submitted %1', formatExactly(submitted))}
    >
      {formatMoment(submitted, Date.now())}
    </time>
  );
}

type ActionsProps = Props & {
  tabIndex: number;
  onMenu: (event: MouseEvent<HTMLElement>) => void;
};

function RowActions(props: ActionsProps): ReactElement {
  const { job, trans, commands, tabIndex, onMenu } = props;
  const { name } = job;
  const button = (command: string, label: string, ariaLabel: string) =>
    commands.isVisible(command, { name }) && (
      <button
        className="jp-ToJob-action"
        tabIndex={tabIndex}
        aria-label={ariaLabel}
        title={commands.caption(command, { name })}
        onClick={() => void commands.execute(command, { name })}
      >
        {label}
      </button>
    );
  const { open, watch, cancel, deliver, submitCurrent } = CommandIDs;
  const openLabel = trans.__('Open the result of %1', name);
  const watchLabel = trans.__('Watch %1 live', name);
  return (
    <div className="jp-ToJob-actions">
      {button(open, trans.__('Open'), openLabel)}
      {!isFinal(job) && button(watch, trans.__('Watch'), watchLabel)}
      {button(cancel, trans.__('Cancel'), trans.__('Cancel %1', name))}
      {button(deliver, trans.__('Deliver'), trans.__('Deliver %1', name))}
      {button(
        submitCurrent,
        trans.__('Submit Current Version'),
        trans.__('Submit the current version of %1', name)
      )}
      <button
        className="jp-ToJob-action jp-mod-more"
        tabIndex={tabIndex}
        aria-haspopup="menu"
        aria-label={trans.__('More actions for %1', name)}
        title={trans.__('More actions')}
        onClick={onMenu}
      >
        <ellipsesIcon.react tag="span" aria-hidden="true" />
      </button>
    </div>
  );
}
