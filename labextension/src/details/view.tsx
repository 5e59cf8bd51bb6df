/** The details of a job, in the main area. This module is loaded when the first one is opened. */
import { ReactWidget } from '@jupyterlab/ui-components';
import type { ReactElement } from 'react';

import '../../style/details.css';

import type { IDetailsApi } from '../jobs/client';
import { useKeptFocus } from '../ui/useKeptFocus';
import { useModel } from '../ui/useModel';
import type { IJobs } from '../tokens';
import { DetailsHead } from './head';
import { DetailsModel } from './model';
import { Sections, type SectionServices } from './sections';

export type DetailsServices = Omit<SectionServices, 'model'> & {
  jobs: IJobs;
  api: IDetailsApi;
};

export class JobDetails extends ReactWidget {
  constructor(
    readonly jobName: string,
    private readonly _services: DetailsServices
  ) {
    super();
    const { jobs, api, trans } = _services;
    this.model = new DetailsModel(jobName, jobs, api);
    this.addClass('jp-ToJob-details');
    this.node.tabIndex = 0; // makes it scrollable by keyboard
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('Details of %1', jobName));
  }

  readonly model: DetailsModel;

  override dispose(): void {
    this.model.dispose();
    super.dispose();
  }

  protected override render(): ReactElement {
    return (
      <Details {...this._services} model={this.model} container={this.node} />
    );
  }
}

type Props = SectionServices & { container: HTMLElement };

function Details(props: Props): ReactElement {
  const { model, container } = props;
  useModel(model);
  useKeptFocus(container, node => node);
  const { job } = model;
  return (
    <>
      <DetailsHead {...props} />
      {job !== null && <Sections {...props} job={job} />}
    </>
  );
}
