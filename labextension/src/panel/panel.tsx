/** The jobs panel of the left side bar. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { Message } from '@lumino/messaging';
import { type ReactElement, useEffect, useState } from 'react';

import type { IJobs } from '../tokens';
import { jobsIcon } from '../ui/icons';
import { useKeptFocus } from '../ui/useKeptFocus';
import { useModel } from '../ui/useModel';
import { announceChanges } from './announcer';
import { ConnectionNotice, ListControls, PanelHeading } from './head';
import { JobList } from './list';
import type { PanelModel } from './model';

/** The panel's id, under which the layout restorer knows it. */
export const PANEL_ID = 'jupyter-to-job-jobs';

/** The list of jobs, with the number of unfinished ones on its tab. */
export class JobsPanel extends ReactWidget {
  constructor(
    private readonly _model: PanelModel,
    private readonly _commands: CommandRegistry,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this.id = PANEL_ID;
    this.addClass('jp-ToJob-panel');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', _trans.__('Jobs'));
    this.title.icon = jobsIcon;
    _model.changed.connect(this._updateBadge, this);
    this.title.changed.connect(this._updateBadge, this);
    this._updateBadge();
  }

  override dispose(): void {
    this._model.dispose();
    super.dispose();
  }

  protected override render(): ReactElement {
    return (
      <PanelContent
        model={this._model}
        commands={this._commands}
        trans={this._trans}
        container={this.node}
      />
    );
  }

  /** Refresh when the panel is opened and there are no events. */
  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    if (this._model.jobs.feed !== 'live') {
      void this._model.jobs.refresh();
    }
  }

  /** Focus the active job when the panel is activated. */
  protected override onActivateRequest(msg: Message): void {
    super.onActivateRequest(msg);
    // React has not rendered yet at the first activation.
    void Promise.resolve(this.renderPromise).then(() => {
      findFocusTarget(this.node)?.focus();
    });
  }

  /** Set the badge again when JupyterLab 4.4's side bar replaces the title's dataset. */
  private _updateBadge(): void {
    const count = this._model.jobs.unfinishedCount;
    const caption =
      count === 0
        ? this._trans.__('Jobs')
        : this._trans._n('Jobs (%1 unfinished)', 'Jobs (%1 unfinished)', count);
    const badge = count > 99 ? '99+' : count === 0 ? '' : String(count);
    this.title.caption = caption;
    if (this.title.dataset.unfinished !== badge) {
      this.title.dataset = { ...this.title.dataset, unfinished: badge };
    }
  }
}

type Props = {
  model: PanelModel;
  commands: CommandRegistry;
  trans: TranslationBundle;
  /** The panel's node. */
  container: HTMLElement;
};

type AnnouncementsProps = { jobs: IJobs; trans: TranslationBundle };

/** Find the element that gets the focus: the active job, or else the search field. */
function findFocusTarget(panel: HTMLElement): HTMLElement | null {
  return (
    panel.querySelector<HTMLElement>('[data-main][tabindex="0"]') ??
    panel.querySelector('input')
  );
}

function PanelContent({
  model,
  commands,
  trans,
  container
}: Props): ReactElement {
  useModel(model);
  useKeptFocus(container, findFocusTarget);
  return (
    <>
      <PanelHeading commands={commands} trans={trans} />
      <ListControls model={model} trans={trans} />
      <ConnectionNotice jobs={model.jobs} trans={trans} />
      <JobList model={model} commands={commands} trans={trans} />
      <Announcements jobs={model.jobs} trans={trans} />
    </>
  );
}

/**
 * What screen readers say of changes. It has a state of its own, so that an announcement renders
 * nothing else: the list would show news under a pressed pointer.
 */
function Announcements({ jobs, trans }: AnnouncementsProps): ReactElement {
  const [{ text, id }, announce] = useState({ text: '', id: 0 });
  useEffect(
    () =>
      announceChanges(
        jobs,
        next => announce(last => ({ text: next, id: last.id + 1 })),
        trans
      ),
    [jobs, trans]
  );
  return (
    <div className="jp-ToJob-spoken" aria-live="polite">
      {/* A new element each time: the same text again would not be spoken. */}
      <span key={id}>{text}</span>
    </div>
  );
}
