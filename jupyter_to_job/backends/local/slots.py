"""The slots: how much there is, who holds what, and which devices a job gets.

Amounts are counted for every resource; of GPUs and MIG devices each one is known by its id and is
never given to two jobs at once.
"""

from __future__ import annotations

import json
import math
import os
import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import cached_property
from pathlib import Path
from typing import Any

from job_runner.host.gpu_devices import (
    DEVICE_ORDER,
    DRIVER_ORDER,
    VISIBLE_DEVICES,
    is_driver_installed,
)

from .capacity import Amounts, capacity, configured
from .gpus import Devices, Probe, is_device
from .hosts import SLOTS, host_folder


@dataclass(frozen=True)
class Allocation:
    """What one job occupies: amounts, and ids of devices by resource name."""

    demand: Amounts
    devices: Devices = field(default_factory=dict)


class Machine:
    """This machine's capacity, `setting` (JUPYTER_TO_JOB_CAPACITY) winning over what is there.

    The driver is asked for GPUs when somebody first needs to know. Devices that are configured and
    not there are pretended, with the ids 0, 1, ...: for trying out.
    """

    def __init__(self, setting: str = "", probe: Callable[[], Probe] = Probe) -> None:
        self.total = capacity(setting)
        self.devices: Devices = {}
        self.trouble = ""
        """Why the driver could not be asked; "" if it could, or need not be."""
        self._configured = configured(setting)
        self._start = probe
        self._probe: Probe | None = None
        self._asked = False

    def knows(self, names: Collection[str], wait: float = 0.0) -> bool:
        """Tell whether the amount of each resource is known, waiting at most `wait` seconds."""
        if self._asked or not set(names) - {"cpu", "memory"}:
            return True
        self._probe = self._probe or self._start()
        found = self._probe.devices(wait)
        if found is None:
            return False
        self._asked, self.trouble = True, self._probe.problem
        for name, ids in found.items():
            if name not in self._configured:
                self.total[name] = Decimal(len(ids))
            self.devices[name] = ids[: int(self.total[name])]
        for name, amount in self._configured.items():
            if is_device(name) and amount > len(self.devices.get(name, ())):
                self.devices[name] = tuple(str(n) for n in range(int(amount)))
        return True

    @property
    def complete(self) -> bool:
        """Whether the driver was asked, so that `total` is all there is."""
        return self._asked

    @cached_property
    def has_devices(self) -> bool:
        """Whether a job could find GPUs here that it did not ask for."""
        return any(is_device(name) for name in self.total) or is_driver_installed()


@dataclass
class Slots:
    """Who holds what of a machine."""

    machine: Machine
    held: dict[str, Allocation] = field(default_factory=dict)
    """By job; changed by `take`, `adopt` and `release` only."""

    def used(self) -> dict[str, Decimal]:
        """Return how much of each resource is occupied."""
        return sum_of(self.held.values())

    def lacking(self, demand: Amounts) -> set[str]:
        """Return the resources of which less is free than `demand` asks for."""
        used, total = self.used(), self.machine.total
        zero = Decimal(0)
        return {
            name
            for name, amount in demand.items()
            if used.get(name, zero) + amount > total.get(name, zero)
            or (is_device(name) and math.ceil(amount) > len(self._free(name)))
        }

    def take(self, job: str, demand: Amounts) -> Allocation:
        """Occupy what `demand` asks for, of which nothing may be lacking; say which devices."""
        devices = {
            name: self._free(name)[: math.ceil(amount)]
            for name, amount in demand.items()
            if is_device(name)
        }
        self.held[job] = Allocation(demand, devices)
        return self.held[job]

    def adopt(self, job: str, holding: Allocation) -> None:
        """Occupy what a run already has, whatever there is."""
        self.held[job] = holding

    def release(self, job: str) -> None:
        """Give back what a job held, if it held anything."""
        self.held.pop(job, None)

    def variables(self, holding: Allocation) -> dict[str, str]:
        """Return the variables that show a run its own devices and none of the others'."""
        ids = [device for devices in holding.devices.values() for device in devices]
        if ids:
            # Pretended ids are indices: CUDA is to count as the driver does, whom the runner asks.
            return {VISIBLE_DEVICES: ",".join(ids), DEVICE_ORDER: DRIVER_ORDER}
        accelerated = set(holding.demand) - {"cpu", "memory"}
        return {} if accelerated or not self.machine.has_devices else {VISIBLE_DEVICES: ""}

    def _free(self, name: str) -> tuple[str, ...]:
        taken = {d for holding in self.held.values() for d in holding.devices.get(name, ())}
        return tuple(d for d in self.machine.devices.get(name, ()) if d not in taken)


def sum_of(holdings: Collection[Allocation]) -> dict[str, Decimal]:
    """Return how much of each resource some holdings come to."""
    used: dict[str, Decimal] = {}
    for holding in holdings:
        for name, amount in holding.demand.items():
            used[name] = used.get(name, Decimal(0)) + amount
    return used


@dataclass(frozen=True)
class SlotReport:
    """What a dispatcher says of its slots, for readers: see `publish`.

    `complete`: what is not in `total` is not there, rather than not known yet.
    """

    total: Amounts
    complete: bool
    held: Mapping[str, Allocation]


def publish(exchange: Path, host: str, slots: Slots) -> None:
    """Write slots.json for readers: not durable, since a new dispatcher finds out by itself."""
    document = {
        "v": 1,
        "total": _plain(slots.machine.total),
        "complete": slots.machine.complete,
        "jobs": {
            job: {"demand": _plain(holding.demand), "devices": holding.devices}
            for job, holding in slots.held.items()
        },
    }
    write_quickly(host_folder(exchange, host) / SLOTS, document)


def published(exchange: Path, host: str) -> SlotReport | None:
    """Read slots.json; None if there is none that can be read."""
    try:
        document = json.loads((host_folder(exchange, host) / SLOTS).read_bytes())
        held = {
            job: Allocation(_amounts(one["demand"]), devices_of(one))
            for job, one in document["jobs"].items()
        }
        return SlotReport(_amounts(document["total"]), bool(document["complete"]), held)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, InvalidOperation):
        return None


def write_quickly(path: Path, document: Mapping[str, Any]) -> None:
    """Replace a document atomically, without fsync: what a reboot makes meaningless."""
    draft = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(document, file)
        draft.rename(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def devices_of(document: Mapping[str, Any]) -> Devices:
    """Read the devices of slot.json, or of an entry of slots.json."""
    return {str(k): tuple(str(d) for d in v) for k, v in document.get("devices", {}).items()}


def _plain(amounts: Amounts) -> dict[str, str]:
    return {name: f"{amount:f}" for name, amount in amounts.items()}


def _amounts(document: Mapping[str, Any]) -> dict[str, Decimal]:
    return {str(name): Decimal(str(amount)) for name, amount in document.items()}
