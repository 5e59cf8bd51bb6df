"""Memory and utilisation of the GPUs that a run may use, as the vendor's library tells them.

Imported and asked in a thread that nobody waits for: a driver may hang. Whatever it cannot tell is
None, and nothing of it ever ends a run.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VISIBLE = "CUDA_VISIBLE_DEVICES"
_LIBRARY = "libnvidia-ml.so.1"
_OWN_NAMESPACE = Path("/proc/self/ns/pid")
_FIRST_NAMESPACE = "pid:[4026531836]"
"""What Linux always calls the host's own process ids, in which the driver counts."""


@dataclass(frozen=True)
class Seen:
    """One look: bytes on all GPUs together, and their mean utilisation from 0 to 1."""

    memory: int | None
    utilisation: float | None


Read = Callable[[Collection[int]], Seen]


def open_driver(visible: str | None) -> Read | None:
    """Return what to call with the process ids of a run; None where there is no GPU to look at.

    `visible` is the value of `CUDA_VISIBLE_DEVICES`, None if it is not set.
    """
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError:
        return None
    import pynvml

    try:
        pynvml.nvmlInit()
        devices = _devices(pynvml, visible)
    except pynvml.NVMLError:
        return None
    return _Reader(pynvml, devices) if devices else None


def _devices(nvml: Any, visible: str | None) -> list[Any]:
    """Return the handles of the GPUs that CUDA would use: up to the first name that is wrong."""
    count = nvml.nvmlDeviceGetCount()
    if visible is None:
        return [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
    handles: list[Any] = []
    for name in (part.strip() for part in visible.split(",")):
        handle = _device(nvml, name, count)
        if handle is None:
            break
        handles.append(handle)
    return handles


def _device(nvml: Any, name: str, count: int) -> Any:
    """Return a GPU by index, by (the beginning of) its UUID, or a MIG device by UUID, or None."""
    if name.isdecimal():
        return nvml.nvmlDeviceGetHandleByIndex(int(name)) if int(name) < count else None
    if name.startswith("MIG-"):
        try:
            return nvml.nvmlDeviceGetHandleByUUID(name)
        except nvml.NVMLError:
            return None
    if name.startswith("GPU-"):
        for handle in (nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)):
            if nvml.nvmlDeviceGetUUID(handle).startswith(name):
                return handle
    return None


class _Reader:
    """Reads some GPUs again and again."""

    def __init__(self, nvml: Any, devices: list[Any]) -> None:
        self._nvml = nvml
        self._devices = devices
        # In a container process ids are others: the run's own ones are not found in the list.
        self._knows_processes = _is_first_namespace()

    def __call__(self, pids: Collection[int]) -> Seen:
        memory = [self._memory(device, pids) for device in self._devices]
        rates = [self._utilisation(device) for device in self._devices]
        known = [rate for rate in rates if rate is not None]
        return Seen(
            None if None in memory else sum(used for used in memory if used is not None),
            sum(known) / len(known) if known else None,
        )

    def _memory(self, device: Any, pids: Collection[int]) -> int | None:
        """Return what the processes use on a GPU, or all that is used if nobody tells."""
        try:
            running = self._nvml.nvmlDeviceGetComputeRunningProcesses(device)
            ours = [process.usedGpuMemory for process in running if process.pid in pids]
            self._knows_processes = self._knows_processes or bool(ours)
            if self._knows_processes and None not in ours:
                return int(sum(ours))
        except self._nvml.NVMLError:  # too old a driver, or not allowed: the whole GPU then
            self._knows_processes = False
        try:
            return int(self._nvml.nvmlDeviceGetMemoryInfo(device).used)
        except self._nvml.NVMLError:
            return None

    def _utilisation(self, device: Any) -> float | None:
        try:
            return float(self._nvml.nvmlDeviceGetUtilizationRates(device).gpu) / 100
        except self._nvml.NVMLError:  # not told for a part of a GPU (MIG)
            return None


def _is_first_namespace() -> bool:
    try:
        return str(_OWN_NAMESPACE.readlink()) == _FIRST_NAMESPACE
    except OSError:
        return False
