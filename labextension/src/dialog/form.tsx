/** The dialog's form. Flavor and device are in sight, everything else is collapsed. */
import { ReactWidget } from '@jupyterlab/ui-components';
import { Panel } from '@lumino/widgets';
import type { ReactElement } from 'react';

import { useModel } from '../ui/useModel';
import { forecastText, sweepForecastText } from '../ui/waitText';
import { EnvironmentSection } from './environmentSection';
import { FilesSection } from './filesSection';
import { DeviceChoice, FlavorCards } from './flavorCards';
import type { SubmitModel } from './model';
import { MoreSection } from './moreSection';
import { ParametersSection } from './parametersSection';
import { describeRunPlace } from './runPlace';
import type { ModelProps } from './section';
import { StatusArea } from './status';
import { SeveralPlacesChoice, SweepSection } from './sweepSection';

/**
 * The dialog's body. It is a panel around the React widget: JupyterLab's dialog waits for a React
 * body before it takes the focus, and keys typed meanwhile would reach the notebook.
 */
export class SubmitForm extends Panel {
  constructor(model: SubmitModel) {
    super();
    this.addClass('jp-ToJobDialog-form');
    const content = ReactWidget.create(<FormContent model={model} />);
    content.addClass('jp-ToJobDialog-whole');
    this.addWidget(content);
  }
}

/** Where the run would work. It is always rendered: a screen reader tells what changes in it. */
function RunPlace({ model }: ModelProps): ReactElement {
  const { files, preflight, trans } = model;
  const sentences =
    preflight === null ? [] : describeRunPlace(preflight, files, trans);
  return <Answer model={model} text={sentences.join(' ')} />;
}

/** What the jobs would wait for, and estimates; always rendered for the same reason. */
function Forecast({ model }: ModelProps): ReactElement {
  const { preflight, sweep, trans } = model;
  const toText = sweep.isActive ? sweepForecastText : forecastText;
  const wait = preflight?.wait ?? null; // an older server does not send it
  return (
    <Answer model={model} text={wait === null ? '' : toText(wait, trans)} />
  );
}

/**
 * What preflight says of flavor and device. While these are others than it answered about, its
 * text is invisible, but keeps its room: nothing moves under the pointer until the next answer.
 */
function Answer({ model, text }: ModelProps & { text: string }): ReactElement {
  const isOutdated = model.presentPreflight === null;
  return (
    <p
      className={`jp-ToJobDialog-place${isOutdated ? ' jp-mod-outdated' : ''}`}
      aria-live="polite"
    >
      {text}
    </p>
  );
}

function FormContent({ model }: ModelProps): ReactElement {
  useModel(model);
  const { source } = model;
  return (
    <>
      <div
        className="jp-ToJobDialog-fields"
        aria-busy={model.sendingKey !== null}
      >
        <p className="jp-ToJobDialog-notebook">{source.path}</p>
        {source.note && <p className="jp-ToJobDialog-note">{source.note}</p>}
        <FlavorCards model={model} />
        <DeviceChoice model={model} />
        <SeveralPlacesChoice model={model} />
        <RunPlace model={model} />
        <Forecast model={model} />
        <ParametersSection model={model} />
        <SweepSection model={model} />
        {source.takesFiles && <FilesSection model={model} />}
        <EnvironmentSection model={model} />
        <MoreSection model={model} />
      </div>
      <StatusArea model={model} />
    </>
  );
}
