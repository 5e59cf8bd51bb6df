/** What can be read off the catalog: which choices there are, and what is taken where none is made. */

import type { Catalog, Device } from '../api';

/** How jobs on one piece of hardware are kept apart. */
export type Isolation = Exclude<Device['isolation'], null>;

/** The flavor that is taken where nobody chose one that can be had. */
export function defaultFlavor(catalog: Catalog): string | undefined {
  const preferred = catalog.default.flavor;
  return unavailableReason(catalog, preferred) === null
    ? preferred
    : Object.keys(catalog.flavors).find(
        name => unavailableReason(catalog, name) === null
      );
}

/** Why a flavor cannot be had here: `''` where that is all that is known, null if it can be had. */
export function unavailableReason(
  catalog: Catalog,
  name: string
): string | null {
  const flavor = catalog.flavors[name];
  if (flavor === undefined) {
    return '';
  }
  return flavor.unavailable_reason ?? (flavor.allowed ? null : '');
}

/** The devices of a flavor, by name, in the catalog's order. */
export function listDevices(
  catalog: Catalog,
  flavor: string | undefined
): [string, Device][] {
  const names = catalog.flavors[flavor ?? '']?.devices ?? [];
  return names.flatMap(name => {
    const device = catalog.devices[name];
    return device === undefined ? [] : [[name, device] as [string, Device]];
  });
}

/** The device that a flavor comes with where nobody chose one of its own. */
export function defaultDevice(
  catalog: Catalog,
  flavor: string | undefined
): string | undefined {
  const names = listDevices(catalog, flavor).map(([name]) => name);
  const preferred = catalog.default.device;
  const isPreferred = flavor === catalog.default.flavor && preferred !== null;
  return isPreferred && names.includes(preferred) ? preferred : names[0];
}
