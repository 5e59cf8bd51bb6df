/** Reads the catalog: which choices exist, and the defaults. */

import type { Catalog, Device } from '../api';

/** How jobs that share a device are isolated from each other. */
export type Isolation = Exclude<Device['isolation'], null>;

/** The flavor to use if the user chose none, or chose one that is unavailable. */
export function defaultFlavor(catalog: Catalog): string | undefined {
  const names = [catalog.default.flavor, ...Object.keys(catalog.flavors)];
  return names.find(name => unavailableReason(catalog, name) === null);
}

/** Why a flavor is unavailable: null if it is available, `''` if no reason is given. */
export function unavailableReason(
  catalog: Catalog,
  name: string
): string | null {
  const flavor = catalog.flavors[name];
  return flavor?.unavailable_reason ?? (flavor?.allowed ? null : '');
}

/** The devices of a flavor, by name, in the catalog's order. */
export function listDevices(
  catalog: Catalog,
  flavor: string | undefined
): [string, Device][] {
  const names = catalog.flavors[flavor ?? '']?.devices ?? [];
  return names
    .filter(name => name in catalog.devices)
    .map(name => [name, catalog.devices[name]!]);
}

/** The device to use with a flavor if the user chose none. */
export function defaultDevice(
  catalog: Catalog,
  flavor: string | undefined
): string | undefined {
  const names = listDevices(catalog, flavor).map(([name]) => name);
  const preferred = catalog.default.device;
  const isPreferred = flavor === catalog.default.flavor && preferred !== null;
  return isPreferred && names.includes(preferred) ? preferred : names[0];
}
