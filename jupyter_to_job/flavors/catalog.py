"""The catalog: chooses flavor and device of a submission, and finds choices that never fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Literal

from pydantic import Field

from ..domain.errors import Refused
from ..domain.quantities import parse_quantity
from ..domain.suggestions import no_device, no_flavor
from .fields import Name
from .models import Default, Device, Extensible, Flavor


@dataclass(frozen=True)
class Choice:
    """A flavor and a device that go together."""

    flavor_name: str
    device_name: str
    flavor: Flavor
    device: Device

    @cached_property
    def demand(self) -> Mapping[str, Decimal]:
        """The amounts that a job occupies: of the device, `cpu` in cores, `memory` in bytes.

        The device comes first: where both a GPU and cores are missing, messages name the GPU.
        """
        flavor, device = self.flavor, self.device
        gpus = {device.resource: str(flavor.gpus)} if device.resource and flavor.gpus else {}
        amounts = {**gpus, **device.limits}
        amounts.setdefault("cpu", flavor.cpu)
        amounts.setdefault("memory", flavor.memory)
        return {name: parse_quantity(amount) for name, amount in amounts.items()}

    @cached_property
    def accelerators(self) -> Mapping[str, Decimal]:
        """The same without cores and memory."""
        return {name: n for name, n in self.demand.items() if n and name not in ("cpu", "memory")}

    def lacking(self, totals: Mapping[str, Decimal]) -> tuple[str, Decimal, Decimal] | None:
        """Return a resource of which this needs more than the total: name, need, total.

        None if the choice fits. A resource that is not in `totals` does not exist.
        """
        for name, need in self.demand.items():
            total = totals.get(name, Decimal(0))
            if need > total:
                return name, need, total
        return None


def device_unit(device: Device) -> Mapping[str, Decimal]:
    """Return what one unit of a device takes: one of its `resource`, or else its `limits`.

    Nothing for a device without either: of cores and memory every flavor takes another amount.
    """
    if device.resource is not None:
        return {device.resource: Decimal(1)}
    unit = {name: parse_quantity(amount) for name, amount in device.limits.items()}
    return {name: amount for name, amount in unit.items() if amount}


class Catalog(Extensible):
    """The whole file. Built by `load_catalog`, which sees to it that the names in it exist."""

    apiVersion: Literal["jupyter-to-job.io/v1"] = Field(  # noqa: N815 - the file's own spelling
        description="The version of this format."
    )
    default: Default = Field(description="What is taken when a submission names nothing.")
    flavors: dict[Name, Flavor] = Field(description="Amounts of resources, by name.")
    devices: dict[Name, Device] = Field(description="Kinds of accelerators, by name.")

    def choose(
        self, flavor: str | None, device: str | None, groups: frozenset[str] = frozenset()
    ) -> Choice:
        """Return the checked choice; without a device the default's, else the flavor's first.

        Raises UnknownChoice for names that do not exist, Refused where `allowed` excludes `groups`.
        """
        if flavor is None:
            flavor = self.default.flavor
        entry = self.flavors.get(flavor)
        if entry is None:
            raise no_flavor(flavor, self.flavors)
        if device is None:
            default = self.default.device
            device = default if default in entry.devices else entry.devices[0]
        if device not in entry.devices:
            raise no_device(device, flavor, entry.devices)
        if not entry.permits(groups):
            raise Refused(
                f"Flavor {flavor!r} is for the groups {', '.join(entry.allowed.groups)}.",
                "Choose another flavor, or ask your administrator.",
            )
        return Choice(flavor, device, entry, self.devices[device])

    def choices(self, flavor: str) -> list[Choice]:
        """Return the flavor with each of its devices."""
        entry = self.flavors[flavor]
        return [Choice(flavor, name, entry, self.devices[name]) for name in entry.devices]
