"""Asks the NVIDIA driver for its devices, through NVIDIA's own bindings.

`python -m jupyter_to_job.backends.local.nvml` prints a JSON object: resource name to device ids.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping

import pynvml

from job_runner.host.gpu_devices import (
    VISIBLE_DEVICES,
    is_partitioned,
    partitions,
    select_visible,
)

from ...domain.environment import ATTEMPT_VARIABLE
from .gpus import GPU, MIG

_Device = tuple[str, str]
"""A resource, as Kubernetes' device plugin names it, and a device's UUID."""


def query_driver() -> list[list[_Device]]:
    """Return each GPU as what is given out of it: itself, or its partitions; in NVML's order."""
    pynvml.nvmlInit()
    return [
        list(_devices(pynvml.nvmlDeviceGetHandleByIndex(index)))
        for index in range(pynvml.nvmlDeviceGetCount())
    ]


def visible(gpus: list[list[_Device]], environ: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the ids of the devices that the environment leaves to us, by resource.

    CUDA_VISIBLE_DEVICES may set a user's share of a machine; then that share is lent out. The
    variable of a job says nothing of its user's share, so inside a job all devices count.
    """
    devices = [device for gpu in gpus for device in gpu]
    if VISIBLE_DEVICES in environ and ATTEMPT_VARIABLE not in environ:
        devices = select_visible(environ[VISIBLE_DEVICES], gpus, uuid_of=lambda device: device[1])
    uuids: dict[str, list[str]] = {}
    for resource, uuid in devices:
        uuids.setdefault(resource, []).append(uuid)
    return uuids


def _devices(gpu: object) -> Iterator[_Device]:
    if not is_partitioned(pynvml, gpu):
        yield GPU, pynvml.nvmlDeviceGetUUID(gpu)
        return
    for part in partitions(pynvml, gpu):
        profile = pynvml.nvmlDeviceGetName(part).rpartition("MIG ")[2].strip()
        yield MIG + profile.replace("+", "."), pynvml.nvmlDeviceGetUUID(part)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(visible(query_driver(), dict(os.environ))))
