/** The browser's permission for notifications of the computer. */

/**
 * What the browser allows. `insecure`: a page without HTTPS may not ask. `missing`: the browser has
 * no notifications.
 */
export type Permission =
  'granted' | 'denied' | 'default' | 'insecure' | 'missing';

export function readPermission(): Permission {
  if (!window.isSecureContext) {
    return 'insecure';
  }
  return typeof window.Notification === 'undefined'
    ? 'missing'
    : window.Notification.permission;
}

/** Have the browser ask the user. Browsers do so only in answer to a click or a key. */
export async function requestPermission(): Promise<Permission> {
  return readPermission() === 'default'
    ? window.Notification.requestPermission()
    : readPermission();
}

/** Call back when the user changes the permission in the browser's own settings. */
export function onPermissionChange(callback: () => void): void {
  void navigator.permissions
    ?.query({ name: 'notifications' })
    .then(status => status.addEventListener('change', callback))
    .catch(() => undefined); // The permission is then read when it is needed.
}
