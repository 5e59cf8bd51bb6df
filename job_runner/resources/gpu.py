"""Memory and utilisation of the GPUs that a run may use, as the driver's library reports them.

A thread that nobody waits for imports and calls the library, because a driver may hang. Whatever
the driver does not report is None, and no fault of it ever ends a run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..host.gpu_devices import (
    DEVICE_ORDER,
    DRIVER_ORDER,
    VISIBLE_DEVICES,
    is_driver_installed,
    is_partitioned,
    partitions,
    select_visible,
)

_PID_NAMESPACE = Path("/proc/self/ns/pid")
_INITIAL_NAMESPACE = "pid:[4026531836]"
"""Linux's constant name for the namespace of the host's own process ids, which the driver uses."""


@dataclass(frozen=True)
class GpuSample:
    """One sample: bytes on all GPUs together, and their mean utilisation from 0 to 1."""

    memory: int | None
    utilisation: float | None


ReadGpus = Callable[[Collection[int]], GpuSample]


def open_nvml(environ: Mapping[str, str]) -> ReadGpus | None:
    """Return a function that samples the GPUs for a run's process ids; None if there is no GPU.

    `environ` is the run's environment: CUDA's variables in it say which GPUs the run sees.
    """
    if not is_driver_installed():
        return None
    import pynvml

    try:
        pynvml.nvmlInit()
        devices = _visible_devices(pynvml, environ)
    except pynvml.NVMLError:
        return None
    return _GpuReader(pynvml, devices) if devices else None


def _visible_devices(nvml: Any, environ: Mapping[str, str]) -> list[Any]:
    """Return the handles of the GPUs that CUDA would use, of a partitioned one those of its parts.

    A container that was given a part may not ask for the memory of the whole GPU. Return none of
    the handles where CUDA may count GPUs in another order than the driver does.
    """
    gpus = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    devices = [list(partitions(nvml, gpu)) if is_partitioned(nvml, gpu) else [gpu] for gpu in gpus]
    if VISIBLE_DEVICES not in environ:
        return [device for parts in devices for device in parts]
    names = [name.strip() for name in environ[VISIBLE_DEVICES].split(",")]
    has_indices = any(map(str.isdecimal, names)) and environ.get(DEVICE_ORDER) != DRIVER_ORDER
    if has_indices and len(set(map(nvml.nvmlDeviceGetName, gpus))) > 1:
        return []
    return select_visible(environ[VISIBLE_DEVICES], devices, nvml.nvmlDeviceGetUUID)


class _GpuReader:
    """Samples the same GPUs again and again.

    Where the driver does not say what the run's processes use, what a whole GPU has in use above
    its least counts: others, and the driver itself, had that before the run used anything.
    """

    def __init__(self, nvml: Any, devices: list[Any]) -> None:
        self._nvml = nvml
        self._devices = devices
        self._least_used = [self._used(device) for device in devices]
        # In a container an old driver lists the host's process ids, and a newer one only the
        # container's: both look the same until the run uses a GPU.
        self._knows_processes = _is_initial_namespace()

    def __call__(self, pids: Collection[int]) -> GpuSample:
        memory = [self._memory(index, pids) for index in range(len(self._devices))]
        rates = [self._utilisation(device) for device in self._devices]
        reported = [rate for rate in rates if rate is not None]
        return GpuSample(
            None if None in memory else sum(used for used in memory if used is not None),
            sum(reported) / len(reported) if reported else None,
        )

    def _memory(self, index: int, pids: Collection[int]) -> int | None:
        """Return the bytes that the processes use on a GPU, or by how many its use has grown."""
        device = self._devices[index]
        try:
            running = self._nvml.nvmlDeviceGetComputeRunningProcesses(device)
            amounts = [process.usedGpuMemory for process in running if process.pid in pids]
            self._knows_processes = self._knows_processes or bool(amounts)
            if self._knows_processes and None not in amounts:
                return int(sum(amounts))
        except self._nvml.NVMLError:  # the driver is too old, or does not allow it
            self._knows_processes = False
        used, least = self._used(device), self._least_used[index]
        if used is None or least is None:
            return None
        self._least_used[index] = min(used, least)
        return max(used - least, 0)

    def _used(self, device: Any) -> int | None:
        """Return the bytes of a GPU that are in use, whoever uses them."""
        try:
            return int(self._nvml.nvmlDeviceGetMemoryInfo(device).used)
        except self._nvml.NVMLError:
            return None

    def _utilisation(self, device: Any) -> float | None:
        try:
            return float(self._nvml.nvmlDeviceGetUtilizationRates(device).gpu) / 100
        except self._nvml.NVMLError:  # not reported for a part of a GPU (MIG)
            return None


def _is_initial_namespace() -> bool:
    try:
        return str(_PID_NAMESPACE.readlink()) == _INITIAL_NAMESPACE
    except OSError:
        return False
