/** What can be read off the catalog: which choices there are, and what is taken where none is made. */

import type { Catalog, Device } from '../api';

/** How jobs on one piece of hardware are kept apart. */
export type Isolation = Exclude<Device['isolation'], null>;

/** The flavor that is taken where nobody chose one that can be had. */
export function usualFlavor(catalog: Catalog): string | undefined {
  const usual = catalog.default.flavor;
  return whyNot(catalog, usual) === null
    ? usual
    : Object.keys(catalog.flavors).find(name => whyNot(catalog, name) === null);
}

/** Why a flavor cannot be had here: `''` where that is all that is known, null if it can be had. */
export function whyNot(catalog: Catalog, name: string): string | null {
  const flavor = catalog.flavors[name];
  if (flavor === undefined) {
    return '';
  }
  return flavor.unavailable_reason ?? (flavor.allowed ? null : '');
}

/** The devices of a flavor, by name, in the catalog's order. */
export function devicesOf(
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
export function usualDevice(
  catalog: Catalog,
  flavor: string | undefined
): string | undefined {
  const names = devicesOf(catalog, flavor).map(([name]) => name);
  const usual = catalog.default.device;
  const isUsual = flavor === catalog.default.flavor && usual !== null;
  return isUsual && names.includes(usual) ? usual : names[0];
}
