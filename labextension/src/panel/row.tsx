/** A job in the list. */
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

import { JOB } from '../jobCommands';
import { isFinal, type Job, resultOf } from '../jobs/job';
import { Bar, Clock, type Told } from '../ui/progress';
import { receipt, remark, standing } from '../ui/statusText';
import { openMenu } from './menu';

/** What all lines are given. */
export type Desk = { commands: CommandRegistry; trans: TranslationBundle };

type Props = Desk & { job: Job; isActive: boolean };

const ICONS: Record<Job['state'], LabIcon> = {
  queued: circleEmptyIcon,
  starting: runIcon,
  running: runIcon,
  succeeded: checkIcon,
  failed: closeIcon,
  cancelled: stopIcon
};

/** A job; rendered again only when it is another, or becomes the one that the keyboard is at. */
export const JobRow = memo(function JobRow(props: Props): ReactElement {
  const { job, trans, commands, isActive } = props;
  const { name, state } = job;
  const Icon = ICONS[state];
  const tabIndex = isActive ? 0 : -1;
  const main = resultOf(job) === null ? JOB.watch : JOB.open;
  const note = remark(job, trans);
  const open = (event: MouseEvent<HTMLElement>) => openMenu(event, job, props);
  return (
    <article
      className={`jp-ToJob-row jp-mod-${state}`}
      aria-label={name}
      onContextMenu={open}
    >
      <Icon.react className="jp-ToJob-state" tag="span" aria-hidden="true" />
      <div className="jp-ToJob-what">
        <button
          className="jp-ToJob-name"
          data-main
          tabIndex={tabIndex}
          title={commands.caption(main, { name })}
          onClick={() => void commands.execute(main, { name })}
        >
          {name}
        </button>
        <Facts job={job} trans={trans} />
        {note !== null && <p className="jp-ToJob-remark">{note}</p>}
        <Receipt job={job} trans={trans} />
        <Actions {...props} tabIndex={tabIndex} open={open} />
      </div>
    </article>
  );
});

function Facts({ job, trans }: Told): ReactElement {
  return (
    <>
      <p className="jp-ToJob-standing">
        <strong>{standing(job, trans)}</strong>
        {!isFinal(job) && <Clock job={job} trans={trans} />}
      </p>
      {job.state === 'running' && <Bar job={job} trans={trans} />}
      <p className="jp-ToJob-origin">
        <span>{job.notebook}</span>{' '}
        <span>{`${job.flavor} · ${job.device}`}</span>
      </p>
    </>
  );
}

function Receipt({ job, trans }: Told): ReactElement | null {
  const words = isFinal(job) ? receipt(job, trans) : null;
  return words === null ? null : <p className="jp-ToJob-receipt">{words}</p>;
}

type Act = Props & {
  tabIndex: number;
  open: (event: MouseEvent<HTMLElement>) => void;
};

function Actions({ job, trans, commands, tabIndex, open }: Act): ReactElement {
  const { name } = job;
  const button = (command: string, label: string, spoken: string) =>
    commands.isVisible(command, { name }) && (
      <button
        className="jp-ToJob-action"
        tabIndex={tabIndex}
        aria-label={spoken}
        title={commands.caption(command, { name })}
        onClick={() => void commands.execute(command, { name })}
      >
        {label}
      </button>
    );
  return (
    <div className="jp-ToJob-actions">
      {button(
        JOB.open,
        trans.__('Open'),
        trans.__('Open the result of %1', name)
      )}
      {!isFinal(job) &&
        button(JOB.watch, trans.__('Watch'), trans.__('Watch %1 live', name))}
      {button(JOB.cancel, trans.__('Cancel'), trans.__('Cancel %1', name))}
      {button(JOB.deliver, trans.__('Deliver'), trans.__('Deliver %1', name))}
      <button
        className="jp-ToJob-action jp-mod-more"
        tabIndex={tabIndex}
        aria-haspopup="menu"
        aria-label={trans.__('More actions for %1', name)}
        title={trans.__('More actions')}
        onClick={open}
      >
        <ellipsesIcon.react tag="span" aria-hidden="true" />
      </button>
    </div>
  );
}
