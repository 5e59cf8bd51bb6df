/**
 * What users can set in JupyterLab's settings editor. `schema/submit.json` describes the same to
 * them, with the defaults.
 */
import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import { Token } from '@lumino/coreutils';
import { type ISignal, Signal } from '@lumino/signaling';

/** The plugin whose schema has the settings. */
export const SETTINGS_ID = 'jupyter-to-job:submit';

/** The settings and their values. */
export type Preferences = {
  /** When the computer shows a notification: `away` while no page of this server is in front. */
  desktopNotifications: 'never' | 'away' | 'always';
  /** The jobs whose ends make a desktop notification; `ended` leaves out cancelled ones. */
  notifyOf: 'failed' | 'ended' | 'all';
  /** The notifications of jobs that the page shows. */
  toasts: 'all' | 'ends' | 'failures' | 'none';
  /** Whether a page tells what ended while none was open. */
  tellMissed: boolean;
  /** The flavor and the device of notebooks without jobs; empty for the catalog's. */
  flavor: string;
  device: string;
  /** The folder of results, as the server's own setting has it; empty for that one. */
  resultsFolder: string;
  confirmCancel: boolean;
  confirmDelete: boolean;
};

export const DEFAULTS: Preferences = {
  desktopNotifications: 'never',
  notifyOf: 'ended',
  toasts: 'all',
  tellMissed: true,
  flavor: '',
  device: '',
  resultsFolder: '',
  confirmCancel: true,
  confirmDelete: true
};

/** The user's settings, which the settings editor may change at any time. */
export interface IPreferences {
  /** The values; the defaults until they are loaded. */
  readonly current: Preferences;
  readonly changed: ISignal<IPreferences, void>;
  /** Resolves when the values are loaded, or cannot be. */
  readonly ready: Promise<void>;
  /** Change a setting for good. */
  set<Name extends keyof Preferences>(
    name: Name,
    value: Preferences[Name]
  ): Promise<void>;
}

/** The token that provides `IPreferences`. */
export const IPreferences = new Token<IPreferences>(
  'jupyter-to-job:IPreferences',
  'What the user has set for jobs in the settings editor.'
);

/** The settings of JupyterLab's registry; without one the defaults, which changes override. */
export class RegistryPreferences implements IPreferences {
  constructor(registry: ISettingRegistry | null = null) {
    this.ready = registry === null ? Promise.resolve() : this._load(registry);
  }

  readonly ready: Promise<void>;
  readonly changed = new Signal<this, void>(this);
  current = DEFAULTS;

  async set<Name extends keyof Preferences>(
    name: Name,
    value: Preferences[Name]
  ): Promise<void> {
    await this.ready;
    if (this._settings === null) {
      this._take({ [name]: value });
    } else {
      await this._settings.set(name, value);
    }
  }

  private async _load(registry: ISettingRegistry): Promise<void> {
    try {
      const settings = await registry.load(SETTINGS_ID);
      this._settings = settings;
      this._take(settings.composite);
      settings.changed.connect(({ composite }) => this._take(composite));
    } catch (error) {
      console.warn('jupyter-to-job: the settings cannot be read', error);
    }
  }

  private _take(values: Partial<Preferences>): void {
    this.current = { ...this.current, ...values };
    this.changed.emit();
  }

  private _settings: ISettingRegistry.ISettings | null = null;
}
