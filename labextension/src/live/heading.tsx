/** What stands above a running notebook or its logs: how the job is, and what to do next. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReactElement } from 'react';

import { JOB } from '../jobCommands';
import { isFinal, type Job, resultOf } from '../jobs/job';
import type { IJobs } from '../tokens';
import { trouble, wording } from '../ui/errors';
import { Bar, Clock } from '../ui/progress';
import { remark, standing } from '../ui/statusText';
import { useKeptFocus } from '../ui/useKeptFocus';
import type { IFollower } from './follower';

/** What a heading is about. */
export type Subject = {
  jobs: IJobs;
  follower: IFollower;
  commands: CommandRegistry;
  trans: TranslationBundle;
  /** The command of the other view: logs for the notebook, the notebook for logs. */
  other: string;
};

/** Tells how a job goes. */
export class Heading extends ReactWidget {
  constructor(private readonly _subject: Subject) {
    super();
    this.addClass('jp-ToJob-live-heading');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', _subject.trans.__('How the job goes'));
    _subject.follower.changed.connect(this._onChanged, this);
  }

  protected override render(): ReactElement {
    return <Whole {...this._subject} place={this.node} />;
  }

  private _onChanged(): void {
    this.update();
  }
}

function Whole(props: Subject & { place: HTMLElement }): ReactElement {
  const { jobs, follower, trans, place } = props;
  useKeptFocus(place, heading => heading.querySelector('button'));
  const job = jobs.get(follower.name);
  return (
    <>
      {job !== undefined && <Standing {...props} job={job} />}
      <Reading {...props} />
      {follower.isShortened && (
        <p className="jp-ToJob-remark">
          {trans.__(
            'The run wrote so much that its middle is left out here: the result has all.'
          )}
        </p>
      )}
    </>
  );
}

function Standing(props: Subject & { job: Job }): ReactElement {
  const { job, trans, commands, other } = props;
  const { name } = job;
  const note = remark(job, trans);
  const button = (command: string) =>
    commands.isVisible(command, { name }) && (
      <button
        className={`jp-mod-styled jp-mod-${command === JOB.open ? 'accept' : 'reject'}`}
        onClick={() => void commands.execute(command, { name })}
      >
        {commands.label(command, { name })}
      </button>
    );
  return (
    <>
      <div className="jp-ToJob-live-standing">
        <p>
          <strong role="status">{standing(job, trans)}</strong>
          {!isFinal(job) && <Clock job={job} trans={trans} />}
        </p>
        {resultOf(job) !== null && button(JOB.open)}
        {button(JOB.cancel)}
        {button(other)}
      </div>
      {job.state === 'running' && <Bar job={job} trans={trans} />}
      {note !== null && <p className="jp-ToJob-remark">{note}</p>}
    </>
  );
}

/** How reading goes, where there is something to say of it. */
function Reading({ follower, jobs, trans }: Subject): ReactElement | null {
  const { reading, share, error } = follower;
  if (reading === 'reading' && share < 0.95) {
    const percent = Math.floor(share * 100);
    return (
      <p className="jp-ToJob-remark">
        {trans.__('Reading what it wrote so far: %1 %', percent)}
      </p>
    );
  }
  if (reading === 'gone') {
    return (
      <p className="jp-ToJob-remark" role="alert">
        {trans.__('The job was deleted, or what it wrote is no longer kept.')}
      </p>
    );
  }
  const isDeaf = jobs.feed === 'barred' && reading !== 'ended';
  const words = isDeaf
    ? trans.__('What comes next is not shown by itself.')
    : reading === 'lost'
      ? wording(error, trans, false)
      : reading === 'ended'
        ? null
        : trouble(jobs.error, jobs.feed, trans);
  return words === null ? null : (
    <p className="jp-ToJob-remark" role="alert">
      {words}{' '}
      <button
        className="jp-mod-styled jp-mod-reject"
        onClick={() => {
          void jobs.refresh();
          void follower.more();
        }}
      >
        {isDeaf ? trans.__('Refresh') : trans.__('Try Again')}
      </button>
    </p>
  );
}
