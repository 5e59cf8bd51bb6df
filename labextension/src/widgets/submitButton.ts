/** The button on a notebook's toolbar. */
import { SemanticCommand } from '@jupyterlab/apputils';
import { ToolbarButton } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { Widget } from '@lumino/widgets';

/**
 * Runs a command for the panel that the button stands on. JupyterLab's own command buttons run it
 * for whichever panel is current at that moment, which need not be the one that was clicked in.
 */
export class SubmitButton extends ToolbarButton {
  constructor(
    private readonly _commands: CommandRegistry,
    private readonly _id: string,
    private readonly _panel: Widget
  ) {
    super({
      className: 'jp-ToJob-submit',
      icon: _commands.icon(_id),
      label: _commands.label(_id),
      tooltip: _commands.caption(_id),
      dataset: { 'data-command': _id },
      noFocusOnClick: true,
      onClick: () => void _commands.execute(_id, this._args)
    });
    _commands.commandChanged.connect(this._onCommandChanged, this);
  }

  override dispose(): void {
    this._commands.commandChanged.disconnect(this._onCommandChanged, this);
    super.dispose();
  }

  private _onCommandChanged(): void {
    this.enabled = this._commands.isEnabled(this._id, this._args);
  }

  /** A panel has its id only after its toolbar was built. */
  private get _args(): { [SemanticCommand.WIDGET]: string } {
    return { [SemanticCommand.WIDGET]: this._panel.id };
  }
}
