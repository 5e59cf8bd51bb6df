/** The table of all jobs, in the main area. Its code is loaded when it is opened. */
import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import {
  ICommandPalette,
  MainAreaWidget,
  WidgetTracker
} from '@jupyterlab/apputils';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import {
  ITranslator,
  nullTranslator,
  type TranslationBundle
} from '@jupyterlab/translation';
import type {
  ReadonlyJSONObject,
  ReadonlyPartialJSONObject
} from '@lumino/coreutils';

import { CommandIDs } from '../jobCommands';
import { IPreferences, RegistryPreferences } from '../settings/preferences';
import type { TableModel, TableState } from '../table/model';
import type { JobsTable, TableServices } from '../table/table';
import { IJobs } from '../tokens';
import { showError } from '../ui/errors';
import { jobsIcon } from '../ui/icons';
import { activate, addToMainArea } from '../ui/place';

type TableWidget = MainAreaWidget<JobsTable>;

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-to-job:table',
  description:
    'Shows all jobs in a table, to sort, search, select and compare.',
  autoStart: true,
  requires: [IJobs],
  optional: [
    ILayoutRestorer,
    ICommandPalette,
    ISettingRegistry,
    ITranslator,
    IPreferences
  ],
  activate: (
    { commands, serviceManager, shell }: JupyterFrontEnd,
    jobs: IJobs,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    settings: ISettingRegistry | null,
    translator: ITranslator | null,
    optionalPreferences: IPreferences | null
  ): void => {
    const preferences = optionalPreferences ?? new RegistryPreferences();
    const trans = (translator ?? nullTranslator).load('jupyter_to_job');
    const tracker = new WidgetTracker<TableWidget>({
      namespace: 'jupyter-to-job-table'
    });
    const { contents } = serviceManager;
    const services = { jobs, commands, contents, preferences, trans };
    const open = createOpener(
      tracker,
      () => createWidget(services, settings),
      widget => addToMainArea(shell, widget, 'Jobs')
    );
    commands.addCommand(CommandIDs.showTable, {
      label: trans.__('Show Jobs as Table'),
      caption: trans.__(
        'Open a table of all jobs: sort, search, select several'
      ),
      icon: jobsIcon,
      describedBy: { args: describeArguments(trans) },
      execute: async args => {
        try {
          const widget = await open();
          widget.content.model.set(readState(args));
          activate(shell, widget);
          return widget;
        } catch (error) {
          showError(error, trans, false);
          return null;
        }
      }
    });
    palette?.addItem({
      command: CommandIDs.showTable,
      category: trans.__('Jobs')
    });
    void restorer?.restore(tracker, {
      command: CommandIDs.showTable,
      args: ({ content }) => content.model.state,
      name: () => 'table'
    });
  }
};

export default plugin;

/** A function that returns the table, and makes it if there is none: one, however often called. */
function createOpener(
  tracker: WidgetTracker<TableWidget>,
  create: () => Promise<TableWidget>,
  add: (widget: TableWidget) => void
): () => Promise<TableWidget> {
  let opening: Promise<TableWidget> | null = null;
  const open = async () => {
    const widget = await create();
    add(widget);
    await tracker.add(widget);
    widget.content.model.stateChanged.connect(() => void tracker.save(widget));
    return widget;
  };
  return async () => {
    const known = tracker.find(() => true);
    if (known === undefined) {
      opening ??= open().finally(() => (opening = null));
    }
    return known ?? opening!;
  };
}

async function createWidget(
  services: TableServices,
  settings: ISettingRegistry | null
): Promise<TableWidget> {
  const { JobsTable } = await import('../table/table');
  const { trans } = services;
  const content = new JobsTable(services);
  const widget = new MainAreaWidget({ content });
  content.node.setAttribute('aria-label', trans.__('Table of jobs'));
  widget.id = 'jupyter-to-job-table';
  widget.title.label = trans.__('Jobs');
  widget.title.icon = jobsIcon;
  widget.title.closable = true;
  widget.toolbar.hide();
  await settings?.load(plugin.id).then(
    loaded => bindColumns(content.model, loaded),
    error => console.warn('The columns of the table are not kept.', error)
  );
  return widget;
}

/** Take the columns from the settings, and write there what the user chooses. */
function bindColumns(
  model: TableModel,
  settings: ISettingRegistry.ISettings
): void {
  const read = () =>
    model.setColumns((settings.composite.columns ?? []) as string[]);
  read();
  settings.changed.connect(read);
  model.columnsChanged.connect(
    (_, ids) => void settings.set('columns', [...ids])
  );
  model.disposed.connect(() => settings.changed.disconnect(read));
}

function describeArguments(trans: TranslationBundle): ReadonlyJSONObject {
  const text = (description: string) => ({ type: 'string', description });
  return {
    type: 'object',
    properties: {
      query: text(trans.__('Words to search for')),
      state: {
        enum: ['all', 'waiting', 'running', 'succeeded', 'failed', 'cancelled'],
        description: trans.__('Which jobs')
      },
      notebook: text(trans.__('Only jobs of this notebook')),
      group: text(trans.__('Only jobs of this group')),
      sort: {
        type: 'object',
        properties: {
          column: { type: 'string' },
          isDescending: { type: 'boolean' }
        },
        description: trans.__('The column to sort by')
      }
    }
  };
}

/** The arguments of the command that change filter or order; the others stay as they are. */
function readState(args: ReadonlyPartialJSONObject): Partial<TableState> {
  const fields = ['query', 'state', 'notebook', 'group', 'sort'] as const;
  return Object.fromEntries(
    fields
      .filter(field => args[field] !== undefined)
      .map(field => [field, args[field]])
  );
}
