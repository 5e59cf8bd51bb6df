"""Memory and utilisation of the GPUs that a run may use, as the vendor's library tells them.

Imported and asked in a thread that nobody waits for: a driver may hang. Whatever it cannot tell is
None, and nothing of it ever ends a run.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VISIBLE = "CUDA_VISIBLE_DEVICES"
ORDER = "CUDA_DEVICE_ORDER"
DEVICE_VARIABLES = (VISIBLE, ORDER)
"""With these whoever starts a runner chooses its GPUs: a job's own values do not count then."""
_DRIVERS_ORDER = "PCI_BUS_ID"
"""By default CUDA counts the fastest GPU first, and nobody but CUDA knows which one that is."""
_LIBRARY = "libnvidia-ml.so.1"
_OWN_NAMESPACE = Path("/proc/self/ns/pid")
_FIRST_NAMESPACE = "pid:[4026531836]"
"""What Linux always calls the host's own process ids, in which the driver counts."""


@dataclass(frozen=True)
class GpuSample:
    """One look: bytes on all GPUs together, and their mean utilisation from 0 to 1."""

    memory: int | None
    utilisation: float | None


Read = Callable[[Collection[int]], GpuSample]


def open_nvml(environ: Mapping[str, str]) -> Read | None:
    """Return what to call with the process ids of a run; None where there is no GPU to look at.

    `environ` is the run's environment: CUDA's variables in it say which GPUs it sees.
    """
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError:
        return None
    import pynvml

    try:
        pynvml.nvmlInit()
        devices = _devices(pynvml, environ)
    except pynvml.NVMLError:
        return None
    return _Reader(pynvml, devices) if devices else None


def _devices(nvml: Any, environ: Mapping[str, str]) -> list[Any]:
    """Return the handles of the GPUs that CUDA would use: up to the first name that is wrong.

    None of them where CUDA may count them in another order than the driver does.
    """
    gpus = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    if VISIBLE not in environ:
        return gpus
    names = [name.strip() for name in environ[VISIBLE].split(",")]
    is_numbered = any(map(str.isdecimal, names)) and environ.get(ORDER) != _DRIVERS_ORDER
    if is_numbered and len(set(map(nvml.nvmlDeviceGetName, gpus))) > 1:
        return []
    handles: list[Any] = []
    for name in names:
        handle = _device(nvml, name, gpus)
        if handle is None:
            break
        handles.append(handle)
    return handles


def _device(nvml: Any, name: str, gpus: list[Any]) -> Any:
    """Return a GPU by index, by (the beginning of) its UUID, or a MIG device by UUID, or None."""
    if name.isdecimal():
        return gpus[int(name)] if int(name) < len(gpus) else None
    if name.startswith("MIG-"):
        try:
            return nvml.nvmlDeviceGetHandleByUUID(name)
        except nvml.NVMLError:
            return None
    if name.startswith("GPU-"):
        for handle in gpus:
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

    def __call__(self, pids: Collection[int]) -> GpuSample:
        memory = [self._memory(device, pids) for device in self._devices]
        rates = [self._utilisation(device) for device in self._devices]
        known = [rate for rate in rates if rate is not None]
        return GpuSample(
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
