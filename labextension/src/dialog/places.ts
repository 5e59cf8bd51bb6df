/** Several flavors and devices: the places in which the runs of a sweep are made. */
import { JSONExt } from '@lumino/coreutils';

import type { Catalog } from '../api';
import { defaultDevice, listDevices, unavailableReason } from '../jobs/catalog';

/** A flavor, and one of its devices. */
export type Place = { flavor: string; device?: string };

/** The chosen flavors, each with those of the chosen devices that it has. */
export class SeveralPlaces {
  constructor(flavor: string | undefined, device: string | undefined) {
    this._flavors = new Set(flavor === undefined ? [] : [flavor]);
    this._devices = new Set(device === undefined ? [] : [device]);
  }

  /** All places, in the catalog's order. A flavor with none of the devices has its usual one. */
  list(catalog: Catalog): Place[] {
    return listPlaces(catalog, this._flavors, this._devices);
  }

  hasFlavor(flavor: string): boolean {
    return this._flavors.has(flavor);
  }

  toggleFlavor(flavor: string): void {
    toggle(this._flavors, flavor);
  }

  /** Take a device, or leave it out. */
  toggleDevice(device: string, catalog: Catalog): void {
    this._devices = this._devicesWithout(device, catalog);
  }

  /** Whether nothing would change without a device: a flavor has no other one. */
  isFixed(device: string, catalog: Catalog): boolean {
    const places = this.list(catalog);
    const devices = this._devicesWithout(device, catalog);
    const others = listPlaces(catalog, this._flavors, devices);
    return (
      places.some(place => place.device === device) &&
      JSONExt.deepEqual(places, others)
    );
  }

  private _devicesWithout(device: string, catalog: Catalog): Set<string> {
    const places = this.list(catalog);
    const used = new Set(places.map(place => place.device ?? ''));
    toggle(used, device);
    return used;
  }

  private readonly _flavors: Set<string>;
  private _devices: Set<string>;
}

/** The devices that a choice of several flavors offers, in the catalog's order. */
export function devicesOf(
  catalog: Catalog,
  flavors: readonly string[]
): ReturnType<typeof listDevices> {
  const offered = new Set(
    flavors.flatMap(flavor =>
      listDevices(catalog, flavor).map(([name]) => name)
    )
  );
  return Object.entries(catalog.devices).filter(([name]) => offered.has(name));
}

/** Whether there is a choice at all, so that several may be chosen. */
export function hasSeveralPlaces(catalog: Catalog): boolean {
  const places = Object.keys(catalog.flavors)
    .filter(flavor => unavailableReason(catalog, flavor) === null)
    .flatMap(flavor => listDevices(catalog, flavor));
  return places.length > 1;
}

function listPlaces(
  catalog: Catalog,
  flavors: ReadonlySet<string>,
  devices: ReadonlySet<string>
): Place[] {
  return Object.keys(catalog.flavors)
    .filter(
      flavor =>
        flavors.has(flavor) && unavailableReason(catalog, flavor) === null
    )
    .flatMap((flavor): Place[] => {
      const names = listDevices(catalog, flavor).map(([name]) => name);
      const chosen = names.filter(name => devices.has(name));
      const usual = defaultDevice(catalog, flavor);
      if (chosen.length > 0) {
        return chosen.map(device => ({ flavor, device }));
      }
      return [{ flavor, ...(usual !== undefined && { device: usual }) }];
    });
}

function toggle(names: Set<string>, name: string): void {
  if (!names.delete(name)) {
    names.add(name);
  }
}
