/** The sections of the details. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import { type ReactElement, useCallback } from 'react';

import type { JobRecord } from '../api';
import { CommandIDs } from '../jobCommands';
import { isFinal, type Job, resultPath } from '../jobs/job';
import { eventText } from '../ui/eventText';
import { formatBytes, formatMoment } from '../ui/format';
import { openSource } from '../ui/openResult';
import { useNow } from '../ui/progress';
import { ViewCommandIDs } from '../viewCommands';
import type { NotebookServices } from '../ui/notebookServices';
import { DifferenceView } from './differenceView';
import { ExportSection } from './exportSection';
import {
  environmentFacts,
  type Fact,
  metricFacts,
  progressFacts,
  retentionText,
  submissionFacts,
  usageFacts,
  valueFacts
} from './facts';
import { plainLog } from './logText';
import type { DetailsModel, LogEnding } from './model';
import { notificationText } from './notificationText';
import { FactList, FoldedSection, isInside, Loaded, Section } from './parts';
import { ReceiptTable } from './receiptTable';
import { createSnapshotNotebook } from './snapshotNotebook';
import { WidgetHost } from './widgetHost';

export type SectionServices = {
  model: DetailsModel;
  commands: CommandRegistry;
  trans: TranslationBundle;
  notebookServices: NotebookServices;
};

type JobProps = SectionServices & { job: Job };

/** Everything below the head. */
export function Sections(props: JobProps): ReactElement {
  const { model, job, trans } = props;
  return (
    <div className="jp-ToJob-sections">
      <div className="jp-ToJob-columns">
        <OverviewSections {...props} />
      </div>
      <Section title={trans.__('What each cell used')}>
        <Loaded resource={model.cells} trans={trans}>
          {cells => (
            <ReceiptTable
              cells={cells}
              isCancelled={job.state === 'cancelled'}
              trans={trans}
            />
          )}
        </Loaded>
      </Section>
      <Loaded resource={model.record} trans={trans}>
        {record => (
          <div className="jp-ToJob-columns">
            <RecordSections {...props} record={record} />
          </div>
        )}
      </Loaded>
      <ToldSections job={job} trans={trans} />
      <ContentSections {...props} />
    </div>
  );
}

function OverviewSections(props: JobProps): ReactElement {
  const { job, commands, trans } = props;
  const path = resultPath(job);
  useNow(job.started !== null && !isFinal(job)); // draws the facts again each second
  const open = (fact: Fact) =>
    fact.job !== undefined
      ? void commands.execute(ViewCommandIDs.details, { name: fact.job })
      : void openSource(commands, fact.path ?? '', trans);
  const list = (title: string, facts: Fact[]) =>
    facts.length > 0 && (
      <Section title={title}>
        <FactList facts={facts} onOpen={open} />
      </Section>
    );
  return (
    <>
      {list(trans.__('Progress'), progressFacts(job, trans))}
      <Section title={trans.__('Result')}>
        <p>
          {path === null ? (
            deliveryText(job, trans)
          ) : (
            <button
              className="jp-ToJob-link"
              onClick={() =>
                void commands.execute(CommandIDs.open, { name: job.name })
              }
            >
              {path}
            </button>
          )}
        </p>
        {job.delivery.message !== null && <p>{job.delivery.message}</p>}
      </Section>
      {list(trans.__('Parameters'), valueFacts(job.parameters))}
      {list(trans.__('Metrics'), metricFacts(job, trans))}
      {list(trans.__('Used'), usageFacts(job, trans))}
      {list(trans.__('Asked for'), submissionFacts(job, trans))}
    </>
  );
}

function deliveryText(job: Job, trans: TranslationBundle): string {
  const texts = {
    pending: isFinal(job)
      ? trans.__('The result is being delivered.')
      : trans.__('The result is delivered when the job has ended.'),
    held: trans.__('The result waits for its delivery.'),
    failed: trans.__('The result could not be delivered.'),
    none: trans.__('There is no result.'),
    delivered: trans.__('The result was delivered.')
  };
  return texts[job.delivery.state];
}

function RecordSections(props: JobProps & { record: JobRecord }): ReactElement {
  const { model, record, commands, trans } = props;
  const files = (list: readonly { path: string; size?: number }[]) => (
    <ul className="jp-ToJob-files">
      {list.map(({ path, size }) => (
        <li key={path}>
          {isInside(path) ? (
            <button
              className="jp-ToJob-link"
              onClick={() => void openSource(commands, path, trans)}
            >
              {path}
            </button>
          ) : (
            path
          )}{' '}
          {size !== undefined && <small>{formatBytes(size)}</small>}
        </li>
      ))}
    </ul>
  );
  return (
    <>
      {record.inputs.length > 0 && (
        <Section title={trans.__('Files that were sent along')}>
          {files(record.inputs)}
        </Section>
      )}
      {record.files.length > 0 && (
        <Section title={trans.__('Files that came back')}>
          {files(record.files.map(path => ({ path })))}
        </Section>
      )}
      <Section title={trans.__('Environment')}>
        <FactList facts={environmentFacts(record, trans)} />
      </Section>
      <Section title={trans.__('Kept')}>
        <p>{retentionText(record, trans)}</p>
      </Section>
      <ExportSection
        model={model}
        formats={record.cleared === null ? record.exports : []}
        trans={trans}
      />
    </>
  );
}

type ToldProps = { job: Job; trans: TranslationBundle };

/** What hooks were told, and what the cluster said. */
function ToldSections({ job, trans }: ToldProps): ReactElement {
  const { notifications, events } = job;
  const now = Date.now();
  return (
    <>
      {notifications.length > 0 && (
        <Section title={trans.__('Notifications')}>
          <FactList
            facts={notifications.map(told => ({
              label: told.hook,
              text: `${notificationText(told, trans)} · ${formatMoment(told.time, now)}`
            }))}
          />
        </Section>
      )}
      {events !== null && events.length > 0 && (
        <Section title={trans.__('What the cluster says')}>
          <ul className="jp-ToJob-files">
            {[...events].reverse().map((event, index) => (
              <li key={index}>
                <time dateTime={event.time}>
                  {formatMoment(event.time, now)}
                </time>{' '}
                <strong>{eventText(event.reason, trans)}</strong>{' '}
                {event.message}
              </li>
            ))}
          </ul>
        </Section>
      )}
    </>
  );
}

/** What is loaded when it is opened: log, difference and snapshot. */
function ContentSections(props: JobProps): ReactElement {
  const { model, job, trans, notebookServices } = props;
  const { snapshot, difference, log } = model;
  const content = snapshot.value;
  const { name } = job;
  const create = useCallback(() => {
    const label = trans.__('Cells of %1', name);
    return createSnapshotNotebook(content!, notebookServices, label);
  }, [content, notebookServices, name, trans]);
  return (
    <>
      <FoldedSection title={trans.__('Log')} onOpen={() => void log.load()}>
        <Loaded resource={log} trans={trans}>
          {log => <LogEnd log={log} name={job.name} trans={trans} />}
        </Loaded>
      </FoldedSection>
      <FoldedSection
        title={trans.__('What changed since')}
        onOpen={() => void difference.load()}
      >
        <Loaded resource={difference} trans={trans}>
          {value => <DifferenceView difference={value} trans={trans} />}
        </Loaded>
      </FoldedSection>
      <FoldedSection
        title={trans.__('The notebook as it was submitted')}
        onOpen={() => content === null && void snapshot.load()}
      >
        <Loaded resource={snapshot} trans={trans}>
          {() => <WidgetHost className="jp-ToJob-snapshot" create={create} />}
        </Loaded>
      </FoldedSection>
    </>
  );
}

type LogProps = { log: LogEnding; name: string; trans: TranslationBundle };

/** The end of the log. The other view follows it, and has the beginning. */
function LogEnd({ log, name, trans }: LogProps): ReactElement {
  const plain = plainLog(log.text);
  if (plain === '') {
    return (
      <p>
        {log.isCut
          ? trans.__('The end has no text. Show Logs has more of it.')
          : trans.__('Nothing was printed.')}
      </p>
    );
  }
  return (
    <>
      {log.isCut && (
        <p>{trans.__('This is the end. Show Logs has more of it.')}</p>
      )}
      <pre
        className="jp-ToJob-log"
        tabIndex={0}
        role="region"
        aria-label={trans.__('Text that %1 printed', name)}
      >
        {plain}
      </pre>
    </>
  );
}
