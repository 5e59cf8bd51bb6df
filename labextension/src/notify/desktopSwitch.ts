/**
 * Switches notifications of the computer on and off. The browser is asked for permission only here,
 * in answer to the user's own click or key.
 */
import { type ISignal, Signal } from '@lumino/signaling';

import type { IPreferences } from '../settings/preferences';
import {
  onPermissionChange,
  type Permission,
  readPermission,
  requestPermission
} from './permission';

export class DesktopSwitch {
  constructor(private readonly _preferences: IPreferences) {
    _preferences.changed.connect(() => this._changed.emit());
    onPermissionChange(() => this._changed.emit());
  }

  /** Something of the fields below has changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Whether the user wants notifications. */
  get isWanted(): boolean {
    return this._preferences.current.desktopNotifications !== 'never';
  }

  /** Whether the user wants notifications, and the browser allows them. */
  get isOn(): boolean {
    return this.isWanted && readPermission() === 'granted';
  }

  /** Whether the user wants them, and the browser would have to be asked. */
  get isUnanswered(): boolean {
    return this.isWanted && readPermission() === 'default';
  }

  /** Switch; resolves to what the browser allows. It is asked when they are switched on. */
  async toggle(): Promise<Permission> {
    return this.isOn ? this._switchOff() : this.switchOn();
  }

  /** Ask the browser, and note that the user wants notifications if it allows them. */
  async switchOn(): Promise<Permission> {
    const permission = await requestPermission();
    if (permission === 'granted' && !this.isWanted) {
      await this._preferences.set('desktopNotifications', 'away');
    }
    this._changed.emit();
    return permission;
  }

  private async _switchOff(): Promise<Permission> {
    await this._preferences.set('desktopNotifications', 'never');
    return readPermission();
  }

  private readonly _changed = new Signal<this, void>(this);
}
