/** Why a job on a cluster waits: since when, and what the cluster says of it. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { type ReactElement, useEffect, useState } from 'react';

import type { ClusterEvent, Job } from '../jobs/job';
import type { IJobs } from '../tokens';
import { eventText } from '../ui/eventText';
import { formatDuration, formatMoment } from '../ui/format';

/** The time between two questions to the cluster while the details are open, in milliseconds. */
const INTERVAL_MS = 10_000;

type Props = {
  jobs: IJobs;
  job: Job;
  trans: TranslationBundle;
  tabIndex: number;
};

/** What a click unfolds. The cluster is asked only while it is open. */
export function WaitDetails(props: Props): ReactElement {
  const { trans, tabIndex } = props;
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details
      className="jp-ToJob-wait"
      open={isOpen}
      onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}
    >
      <summary tabIndex={tabIndex}>{trans.__('Why it waits')}</summary>
      {isOpen && <OpenDetails {...props} />}
    </details>
  );
}

function OpenDetails({ jobs, job, trans }: Props): ReactElement {
  const { events, now } = useEvents(jobs, job);
  return (
    <>
      {job.submitted !== null && (
        <p>
          {trans.__(
            'Submitted at %1, %2 ago.',
            formatMoment(job.submitted, now),
            waitedText(job.submitted, now, trans)
          )}
        </p>
      )}
      <EventList events={events} remark={job.message} now={now} trans={trans} />
    </>
  );
}

function waitedText(
  submitted: string,
  now: number,
  trans: TranslationBundle
): string {
  const seconds = (now - Date.parse(submitted)) / 1000;
  return formatDuration(Math.max(Math.round(seconds), 0), trans);
}

type ListProps = {
  events: readonly ClusterEvent[] | null | undefined;
  /** What the line above says already. */
  remark: string | null;
  now: number;
  trans: TranslationBundle;
};

/** The events, the latest first. */
function EventList(props: ListProps): ReactElement {
  const { events, remark, now, trans } = props;
  if (events === undefined) {
    return <p>{trans.__('Asking the cluster…')}</p>;
  }
  if (events === null) {
    return <p>{trans.__('The cluster does not answer now.')}</p>;
  }
  if (events.length === 0) {
    return <p>{trans.__('The cluster has said nothing about it lately.')}</p>;
  }
  return (
    <ul>
      {[...events].reverse().map(event => (
        <li key={`${event.time} ${event.reason} ${event.message}`}>
          <time dateTime={event.time}>{formatMoment(event.time, now)}</time>{' '}
          <strong>{eventText(event.reason, trans)}</strong>{' '}
          {event.message !== remark && (
            <span className="jp-ToJob-message">{event.message}</span>
          )}
        </li>
      ))}
    </ul>
  );
}

/**
 * Ask for the events of a job now, whenever it changes and at regular intervals. `events` is
 * undefined until the first answer; `now` is the time of the latest one.
 */
function useEvents(
  jobs: IJobs,
  job: Job
): { events: ClusterEvent[] | null | undefined; now: number } {
  const [answer, setAnswer] = useState<{
    events: ClusterEvent[] | null | undefined;
    now: number;
  }>(() => ({ events: undefined, now: Date.now() }));
  useEffect(() => {
    let isCurrent = true;
    const ask = async () => {
      const events = await jobs.getEvents(job.name).catch(() => null);
      if (isCurrent) {
        setAnswer({ events, now: Date.now() });
      }
    };
    void ask();
    const timer = setInterval(() => void ask(), INTERVAL_MS);
    return () => {
      isCurrent = false;
      clearInterval(timer);
    };
  }, [jobs, job]);
  return answer;
}
