/** The heading of the live view and of the logs: the job's status, and buttons. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReactElement } from 'react';

import { CommandIDs } from '../jobCommands';
import { isFinal, type Job, resultPath } from '../jobs/job';
import type { IJobs } from '../tokens';
import { connectionProblem, errorText } from '../ui/errors';
import { pressGate } from '../ui/press';
import { ElapsedTime, ProgressBar, useNote } from '../ui/progress';
import { statusText } from '../ui/statusText';
import { useKeptFocus } from '../ui/useKeptFocus';
import type { Follower } from './follower';

export type HeadingProps = {
  jobs: IJobs;
  follower: Follower;
  commands: CommandRegistry;
  trans: TranslationBundle;
  /** The command of the other view. */
  otherCommand: string;
};

/** Shows the job's status above a view. */
export class LiveHeading extends ReactWidget {
  constructor(private readonly _props: HeadingProps) {
    super();
    this.addClass('jp-ToJob-live-heading');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', _props.trans.__('How the job goes'));
    _props.follower.changed.connect(this._onChanged, this);
  }

  override dispose(): void {
    pressGate.forget(this._render);
    super.dispose();
  }

  protected override render(): ReactElement {
    return <HeadingContent {...this._props} container={this.node} />;
  }

  private _onChanged(): void {
    pressGate.run(this._render);
  }

  private readonly _render = () => this.update();
}

function HeadingContent(
  props: HeadingProps & { container: HTMLElement }
): ReactElement {
  const { jobs, follower, trans, container: place } = props;
  useKeptFocus(place, heading => heading.querySelector('button'));
  const job = jobs.get(follower.name);
  return (
    <>
      {job !== undefined && <JobStatus {...props} job={job} />}
      <ReadStatus {...props} />
      {follower.isTruncated && (
        <p className="jp-ToJob-remark">
          {trans.__(
            'The run wrote so much that its middle is left out here: the result has all.'
          )}
        </p>
      )}
    </>
  );
}

function JobStatus(props: HeadingProps & { job: Job }): ReactElement {
  const { job, trans, commands, otherCommand } = props;
  const { name } = job;
  const note = useNote({ job, trans });
  const button = (command: string) =>
    commands.isVisible(command, { name }) && (
      <button
        className={`jp-mod-styled jp-mod-${command === CommandIDs.open ? 'accept' : 'reject'}`}
        onClick={() => void commands.execute(command, { name })}
      >
        {commands.label(command, { name })}
      </button>
    );
  return (
    <>
      <div className="jp-ToJob-live-standing">
        <p>
          <strong role="status">{statusText(job, trans)}</strong>
          {!isFinal(job) && <ElapsedTime job={job} trans={trans} />}
        </p>
        {resultPath(job) !== null && button(CommandIDs.open)}
        {button(CommandIDs.cancel)}
        {button(otherCommand)}
      </div>
      {job.state === 'running' && <ProgressBar job={job} trans={trans} />}
      {note !== null && <p className="jp-ToJob-remark">{note}</p>}
    </>
  );
}

/** The state of reading, unless all is well. */
function ReadStatus({
  follower,
  jobs,
  trans
}: HeadingProps): ReactElement | null {
  const { readState, fraction, error } = follower;
  if (readState === 'reading' && fraction < 0.95) {
    const percent = Math.floor(fraction * 100);
    return (
      <p className="jp-ToJob-remark">
        {trans.__('Reading what it wrote so far: %1 %', percent)}
      </p>
    );
  }
  if (readState === 'gone') {
    return (
      <p className="jp-ToJob-remark" role="alert">
        {trans.__('The job was deleted, or what it wrote is no longer kept.')}
      </p>
    );
  }
  const isDeaf = jobs.feed === 'forbidden' && readState !== 'ended';
  const text = isDeaf
    ? trans.__('What comes next is not shown by itself.')
    : readState === 'lost'
      ? errorText(error, trans, false)
      : readState === 'ended'
        ? null
        : connectionProblem(jobs.error, jobs.feed, trans);
  return text === null ? null : (
    <p className="jp-ToJob-remark" role="alert">
      {text}{' '}
      <button
        className="jp-mod-styled jp-mod-reject"
        onClick={() => {
          void jobs.refresh();
          void follower.readMore();
        }}
      >
        {isDeaf ? trans.__('Refresh') : trans.__('Try Again')}
      </button>
    </p>
  );
}
