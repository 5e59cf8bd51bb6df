"""How CUDA is told which GPUs it sees, and what that means to the NVIDIA driver."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"
DEVICE_ORDER = "CUDA_DEVICE_ORDER"
DRIVER_ORDER = "PCI_BUS_ID"
"""The value of CUDA_DEVICE_ORDER that counts GPUs as the driver does.

By default CUDA counts the fastest GPU first, and only CUDA knows which one that is.
"""

Device = TypeVar("Device")


def is_driver_installed() -> bool:
    """Tell whether the driver's library can be loaded. The driver itself is not asked."""
    import ctypes  # every command imports this module, and few have this to ask

    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return False
    return True


def is_partitioned(nvml: Any, gpu: Any) -> bool:
    """Tell whether a GPU is in MIG mode: then it is given out in parts, never whole.

    `nvml` is the module of NVIDIA's own bindings.
    """
    try:
        return bool(nvml.nvmlDeviceGetMigMode(gpu)[0])
    except nvml.NVMLError:  # a GPU, or a driver, that has no such thing
        return False


def partitions(nvml: Any, gpu: Any) -> Iterator[Any]:
    """Yield the handles of a GPU's MIG partitions: in a container, of those that it was given."""
    absent = (
        nvml.NVMLError_NotFound,
        nvml.NVMLError_InvalidArgument,
        nvml.NVMLError_NoPermission,
    )
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
        with contextlib.suppress(*absent):
            yield nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index)


def select_visible(
    names: str, gpus: Sequence[Sequence[Device]], uuid_of: Callable[[Device], str]
) -> list[Device]:
    """Return the devices that a value of CUDA_VISIBLE_DEVICES leaves, as CUDA reads it.

    A name is the index of a GPU or the beginning of a UUID. CUDA ignores the first wrong name and
    all after it. `gpus` has the devices of each GPU: itself, or its MIG partitions.
    """
    selected: list[Device] = []
    for name in map(str.strip, names.split(",")):
        if name.isdecimal():
            matches = [device for gpu in gpus[int(name) :][:1] for device in gpu]
        else:
            devices = (device for gpu in gpus for device in gpu)
            matches = [device for device in devices if name and uuid_of(device).startswith(name)]
        if not matches:
            break
        if matches[0] not in selected:
            selected.append(matches[0])
    return selected
