/** The SUBMIT JOB button of a notebook's toolbar. */
import { SemanticCommand } from '@jupyterlab/apputils';
import { ToolbarButton } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { Widget } from '@lumino/widgets';

/**
 * Runs a command for the panel that the button belongs to. JupyterLab's own command buttons run it
 * for the current panel, which may be another one. The button is never disabled, because the dialog
 * gives the focus back to it.
 */
export class SubmitButton extends ToolbarButton {
  constructor(
    commands: CommandRegistry,
    id: string,
    private readonly _panel: Widget
  ) {
    super({
      className: 'jp-ToJob-submit',
      icon: commands.icon(id),
      label: commands.label(id),
      tooltip: commands.caption(id),
      dataset: { 'data-command': id },
      noFocusOnClick: true,
      onClick: () => {
        this.pressed = false; // JupyterLab treats every toolbar button as a toggle.
        void commands.execute(id, this._args);
      }
    });
  }

  /** Computed late: a panel has no id yet when its toolbar is built. */
  private get _args(): { [SemanticCommand.WIDGET]: string } {
    return { [SemanticCommand.WIDGET]: this._panel.id };
  }
}
