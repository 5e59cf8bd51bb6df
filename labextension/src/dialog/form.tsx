/** The dialog's body: how much and which kind in sight, everything else folded away. */
import { ReactWidget } from '@jupyterlab/ui-components';
import type { ReactElement } from 'react';

import { useModel } from '../useModel';
import { Answer } from './answer';
import { Devices, Flavors } from './choice';
import { Files } from './filesSection';
import type { SubmitModel } from './model';
import { More } from './moreSection';
import { Parameters } from './parametersSection';
import type { Shown } from './shown';

/** Shows a model of a submission. */
export class Form extends ReactWidget {
  constructor(private readonly _model: SubmitModel) {
    super();
    this.addClass('jp-ToJobDialog-form');
  }

  protected override render(): ReactElement {
    return <Whole model={this._model} />;
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
