/** The dialog's body: how much and which kind in sight, everything else folded away. */
import { ReactWidget } from '@jupyterlab/ui-components';
import { Panel } from '@lumino/widgets';
import type { ReactElement } from 'react';

import { useModel } from '../ui/useModel';
import { Files } from './filesSection';
import { Devices, Flavors } from './flavorCards';
import type { SubmitModel } from './model';
import { More } from './moreSection';
import { Parameters } from './parametersSection';
import type { Shown } from './shown';
import { Answer } from './status';

/**
 * Shows a model of a submission. A panel around what React renders, for JupyterLab's dialog waits
 * for a body of React's before it takes the focus, and keys that come sooner reach the notebook.
 */
export class Form extends Panel {
  constructor(model: SubmitModel) {
    super();
    this.addClass('jp-ToJobDialog-form');
    const whole = ReactWidget.create(<Whole model={model} />);
    whole.addClass('jp-ToJobDialog-whole');
    this.addWidget(whole);
  }
}

function Whole({ model }: Shown): ReactElement {
  useModel(model);
  const { source } = model;
  return (
    <>
      <div className="jp-ToJobDialog-fields" aria-busy={model.sending !== null}>
        <p className="jp-ToJobDialog-notebook">{source.path}</p>
        {source.note && <p className="jp-ToJobDialog-note">{source.note}</p>}
        <Flavors model={model} />
        <Devices model={model} />
        <Parameters model={model} />
        {source.takesFiles && <Files model={model} />}
        <More model={model} />
      </div>
      <Answer model={model} />
    </>
  );
}
