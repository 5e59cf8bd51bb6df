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
  const { files, presentPreflight, trans } = model;
  const sentences =
    presentPreflight === null
      ? []
      : describeRunPlace(presentPreflight, files.isRunIsolated, trans);
  return (
    <p className="jp-ToJobDialog-place" aria-live="polite">
      {sentences.join(' ')}
    </p>
  );
}

/** What the jobs would wait for, and estimates; always rendered for the same reason. */
function Forecast({ model }: ModelProps): ReactElement {
  const { presentPreflight, sweep, trans } = model;
  const toText = sweep.isActive ? sweepForecastText : forecastText;
  const wait = presentPreflight?.wait ?? null; // an older server does not send it
  return (
    <p className="jp-ToJobDialog-place" aria-live="polite">
      {wait === null ? '' : toText(wait, trans)}
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
