/** A line of the list that shows a job. */
import type { TranslationBundle } from '@jupyterlab/translation';
import {
  checkIcon,
  circleEmptyIcon,
  closeIcon,
  ellipsesIcon,
  type LabIcon,
  runIcon,
  stopIcon
} from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import { memo, type MouseEvent, type ReactElement } from 'react';

import { CommandIDs } from '../jobCommands';
import { isFinal, type Job, resultPath } from '../jobs/job';
import { ElapsedTime, type JobTextProps, ProgressBar } from '../ui/progress';
import { noteText, statusText, usageText } from '../ui/statusText';
import { openJobMenu } from './menu';

/** Services that lines use. */
export type RowServices = {
  commands: CommandRegistry;
  trans: TranslationBundle;
};

type Props = RowServices & { job: Job; isActive: boolean };

const ICONS: Record<Job['state'], LabIcon> = {
  queued: circleEmptyIcon,
  starting: runIcon,
  running: runIcon,
  succeeded: checkIcon,
  failed: closeIcon,
  cancelled: stopIcon
};

/** A job's line. It renders again only if the job or its being active changes. */
export const JobRow = memo(function JobRow(props: Props): ReactElement {
  const { job, trans, commands, isActive } = props;
  const { name, state } = job;
  const Icon = ICONS[state];
  const tabIndex = isActive ? 0 : -1;
  const mainCommand =
    resultPath(job) === null ? CommandIDs.watch : CommandIDs.open;
  const note = noteText(job, trans);
  const onMenu = (event: MouseEvent<HTMLElement>) =>
    openJobMenu(event, job, props);
  return (
    <article
      className={`jp-ToJob-row jp-mod-${state}`}
      aria-label={name}
      onContextMenu={onMenu}
    >
      <Icon.react className="jp-ToJob-state" tag="span" aria-hidden="true" />
      <div className="jp-ToJob-what">
        <button
          className="jp-ToJob-name"
          data-main
          tabIndex={tabIndex}
          title={commands.caption(mainCommand, { name })}
          onClick={() => void commands.execute(mainCommand, { name })}
        >
          {name}
        </button>
        <JobFacts job={job} trans={trans} />
        {note !== null && <p className="jp-ToJob-remark">{note}</p>}
        <UsageLine job={job} trans={trans} />
        <RowActions {...props} tabIndex={tabIndex} onMenu={onMenu} />
      </div>
    </article>
  );
});

function JobFacts({ job, trans }: JobTextProps): ReactElement {
  return (
    <>
      <p className="jp-ToJob-standing">
        <strong>{statusText(job, trans)}</strong>
        {!isFinal(job) && <ElapsedTime job={job} trans={trans} />}
      </p>
      {job.state === 'running' && <ProgressBar job={job} trans={trans} />}
      <p className="jp-ToJob-origin">
        <span>{job.notebook}</span>{' '}
        <span>{`${job.flavor} · ${job.device}`}</span>
      </p>
    </>
  );
}

function UsageLine({ job, trans }: JobTextProps): ReactElement | null {
  const text = isFinal(job) ? usageText(job, trans) : null;
  return text === null ? null : <p className="jp-ToJob-receipt">{text}</p>;
}

type ActionsProps = Props & {
  tabIndex: number;
  onMenu: (event: MouseEvent<HTMLElement>) => void;
};

function RowActions(props: ActionsProps): ReactElement {
  const { job, trans, tabIndex, onMenu } = props;
  const { name } = job;
  return (
    <div className="jp-ToJob-actions">
      <ActionButton
        {...props}
        command={CommandIDs.open}
        label={trans.__('Open')}
        ariaLabel={trans.__('Open the result of %1', name)}
      />
      {!isFinal(job) && (
        <ActionButton
          {...props}
          command={CommandIDs.watch}
          label={trans.__('Watch')}
          ariaLabel={trans.__('Watch %1 live', name)}
        />
      )}
      <ActionButton
        {...props}
        command={CommandIDs.cancel}
        label={trans.__('Cancel')}
        ariaLabel={trans.__('Cancel %1', name)}
      />
      <ActionButton
        {...props}
        command={CommandIDs.deliver}
        label={trans.__('Deliver')}
        ariaLabel={trans.__('Deliver %1', name)}
      />
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

type ActionButtonProps = ActionsProps & {
  command: string;
  label: string;
  ariaLabel: string;
};

/** Runs a command for the job; nothing where the command does not apply to it. */
function ActionButton(props: ActionButtonProps): ReactElement | null {
  const { command, commands, label, ariaLabel, tabIndex } = props;
  const args = { name: props.job.name };
  return commands.isVisible(command, args) ? (
    <button
      className="jp-ToJob-action"
      tabIndex={tabIndex}
      aria-label={ariaLabel}
      title={commands.caption(command, args)}
      onClick={() => void commands.execute(command, args)}
    >
      {label}
    </button>
  ) : null;
}
