"""The slots: the machine's resources, and what each job occupies of them.

Amounts are counted for every resource. GPUs and MIG devices have ids, and no two jobs get the same
device at once.
"""

from __future__ import annotations

import math
import threading
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
from job_runner.protocol import documents

from ...exchange import Request
from .capacity import Amounts, capacity, configured
from .gpus import Devices, Probe, is_device
from .hosts import SLOTS, host_folder


@dataclass(frozen=True)
class Allocation:
    """What one job of a group occupies: amounts, and ids of devices by resource name."""

    demand: Amounts
    devices: Devices = field(default_factory=dict)
    group: str | None = None


class Machine:
    """This machine's capacity; `setting` (JUPYTER_TO_JOB_CAPACITY) overrides what is measured.

    The driver is asked for GPUs when they are first needed. Configured devices that do not exist
    are simulated with the ids 0, 1, ...: for trying out.
    """

    def __init__(self, setting: str = "", probe: Callable[[], Probe] = Probe) -> None:
        self.total = capacity(setting)
        self.devices: Devices = {}
        self.problem = ""
        """The reason why the driver could not be asked; "" if it could, or need not be."""
        self._configured = configured(setting)
        self._start = probe
        self._probe: Probe | None = None
        self._asking = threading.Lock()
        self.is_complete = False
        """Whether the driver was asked, so that `total` has all resources."""

    def probe(self, names: Collection[str], timeout: float = 0.0) -> bool:
        """Ask the driver if need be; tell whether the amounts of these resources are known.

        Many threads of a server may ask, and an answer can be read only once.
        """
        if self.is_complete or not set(names) - {"cpu", "memory"}:
            return True
        if not self._asking.acquire(timeout=timeout):
            return False
        try:
            return self.is_complete or self._ask(timeout)
        finally:
            self._asking.release()

    def _ask(self, timeout: float) -> bool:
        """Ask the driver; tell whether it has answered."""
        self._probe = self._probe or self._start()
        devices = self._probe.devices(timeout)
        if devices is None:
            return False
        self.problem = self._probe.problem
        for name, ids in devices.items():
            if name not in self._configured:
                self.total[name] = Decimal(len(ids))
            self.devices[name] = ids[: int(self.total[name])]
        for name, amount in self._configured.items():
            if is_device(name) and amount > len(self.devices.get(name, ())):
                self.devices[name] = tuple(str(n) for n in range(int(amount)))
        self.is_complete = True
        return True

    @cached_property
    def has_devices(self) -> bool:
        """Whether a job could see GPUs here that it did not ask for."""
        return any(is_device(name) for name in self.total) or is_driver_installed()


@dataclass
class Slots:
    """The allocations of a machine's resources to jobs."""

    machine: Machine
    allocations: dict[str, Allocation] = field(default_factory=dict)
    """By job. What runs occupy already is among them, even beyond the capacity."""

    def lacking(self, demand: Amounts) -> set[str]:
        """Return the resources of which less is free than `demand`."""
        used, total = sum_of(self.allocations.values()), self.machine.total
        zero = Decimal(0)
        return {
            name
            for name, amount in demand.items()
            if used.get(name, zero) + amount > total.get(name, zero)
            or (is_device(name) and math.ceil(amount) > len(self._free(name)))
        }

    def take(self, job: str, demand: Amounts, group: str | None = None) -> Allocation:
        """Allocate `demand`, of which nothing may be lacking; return it with its devices."""
        devices = {
            name: self._free(name)[: math.ceil(amount)]
            for name, amount in demand.items()
            if is_device(name)
        }
        self.allocations[job] = Allocation(demand, devices, group)
        return self.allocations[job]

    def variables(self, allocation: Allocation) -> dict[str, str]:
        """Return the variables by which a run sees its own devices only."""
        ids = [device for devices in allocation.devices.values() for device in devices]
        if ids:
            # Simulated ids are indices: CUDA must count devices in the order of the driver.
            return {VISIBLE_DEVICES: ",".join(ids), DEVICE_ORDER: DRIVER_ORDER}
        accelerated = set(allocation.demand) - {"cpu", "memory"}
        return {} if accelerated or not self.machine.has_devices else {VISIBLE_DEVICES: ""}

    def _free(self, name: str) -> tuple[str, ...]:
        used = {d for a in self.allocations.values() for d in a.devices.get(name, ())}
        return tuple(d for d in self.machine.devices.get(name, ()) if d not in used)


def sum_of(allocations: Collection[Allocation]) -> dict[str, Decimal]:
    """Return the sum of some allocations by resource."""
    used: dict[str, Decimal] = {}
    for allocation in allocations:
        for name, amount in allocation.demand.items():
            used[name] = used.get(name, Decimal(0)) + amount
    return used


def is_group_full(request: Request, allocations: Mapping[str, Allocation]) -> bool:
    """Tell whether as many jobs of a request's group have slots as its limit allows."""
    limit = request.group_limit
    if limit is None:
        return False
    return sum(a.group == request.group for a in allocations.values()) >= limit


@dataclass(frozen=True)
class SlotReport:
    """The content of slots.json, which a dispatcher writes for readers.

    `is_complete`: a resource that is not in `total` does not exist, rather than not known yet.
    """

    total: Amounts
    is_complete: bool
    allocations: Mapping[str, Allocation]


def publish_slots(exchange: Path, host: str, slots: Slots) -> None:
    """Write slots.json for readers."""
    document = {
        "total": _plain(slots.machine.total),
        "complete": slots.machine.is_complete,
        "jobs": {
            job: {
                "demand": _plain(allocation.demand),
                "devices": allocation.devices,
                "group": allocation.group,
            }
            for job, allocation in slots.allocations.items()
        },
    }
    documents.write_document(host_folder(exchange, host) / SLOTS, document)


def read_slots(exchange: Path, host: str) -> SlotReport | None:
    """Return the content of slots.json; None if it cannot be read."""
    try:
        document = documents.read_document(host_folder(exchange, host) / SLOTS) or {}
        allocations = {
            job: Allocation(_amounts(entry["demand"]), _devices_of(entry), entry.get("group"))
            for job, entry in document["jobs"].items()
        }
        return SlotReport(_amounts(document["total"]), bool(document["complete"]), allocations)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, InvalidOperation):
        return None


def read_slot(path: Path) -> Devices:
    """Return the devices in a job's slot.json; none if it is missing, or cannot be read."""
    try:
        return _devices_of(documents.read_document(path) or {})
    except (documents.DocumentError, OSError, AttributeError, TypeError):
        return {}


def _devices_of(document: Mapping[str, Any]) -> Devices:
    """Read the devices of slot.json, or of an entry of slots.json."""
    return {str(k): tuple(str(d) for d in v) for k, v in document.get("devices", {}).items()}


def _plain(amounts: Amounts) -> dict[str, str]:
    return {name: f"{amount:f}" for name, amount in amounts.items()}


def _amounts(document: Mapping[str, Any]) -> dict[str, Decimal]:
    return {str(name): Decimal(str(amount)) for name, amount in document.items()}
