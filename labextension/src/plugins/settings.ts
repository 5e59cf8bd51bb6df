/** Provides what the user has set in JupyterLab's settings editor. */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ISettingRegistry } from '@jupyterlab/settingregistry';

import { IPreferences, RegistryPreferences } from '../settings/preferences';

const plugin: JupyterFrontEndPlugin<IPreferences> = {
  id: 'jupyter-to-job:settings',
  description: 'Reads the settings of jobs.',
  autoStart: true,
  provides: IPreferences,
  optional: [ISettingRegistry],
  activate: (
    _: JupyterFrontEnd,
    registry: ISettingRegistry | null
  ): IPreferences => new RegistryPreferences(registry)
};

export default plugin;
