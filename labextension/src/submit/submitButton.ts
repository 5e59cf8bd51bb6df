/** The button on a notebook's toolbar. */
import { SemanticCommand } from '@jupyterlab/apputils';
import { ToolbarButton } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { Widget } from '@lumino/widgets';

/**
 * Runs a command for the panel that the button stands on. JupyterLab's own command buttons run it
 * for whichever panel is current at that moment, which need not be the one that was clicked in.
 * It is never disabled: the dialog lies over it, and gives it the focus back.
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
        this.pressed = false; // JupyterLab takes every button for a switch
        void commands.execute(id, this._args);
      }
    });
  }

  /** A panel has its id only after its toolbar was built. */
  private get _args(): { [SemanticCommand.WIDGET]: string } {
    return { [SemanticCommand.WIDGET]: this._panel.id };
  }
}
