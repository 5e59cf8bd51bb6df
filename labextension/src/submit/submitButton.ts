/** The SUBMIT JOB button of a notebook's toolbar. */
import { SemanticCommand } from '@jupyterlab/apputils';
import { ToolbarButton } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { Widget } from '@lumino/widgets';

/**
 * A button that runs a command for its panel. JupyterLab's own command buttons run it for the
 * current panel, which may be another one. The button is never disabled, because the dialog gives
 * the focus back to it.
 */
export function createSubmitButton(
  commands: CommandRegistry,
  id: string,
  panel: Widget
): ToolbarButton {
  const button = new ToolbarButton({
    className: 'jp-ToJob-submit',
    icon: commands.icon(id),
    label: commands.label(id),
    tooltip: commands.caption(id),
    dataset: { 'data-command': id },
    noFocusOnClick: true,
    onClick: () => {
      button.pressed = false; // JupyterLab treats every toolbar button as a toggle.
      // A panel has no id yet when its toolbar is built.
      void commands.execute(id, { [SemanticCommand.WIDGET]: panel.id });
    }
  });
  return button;
}
