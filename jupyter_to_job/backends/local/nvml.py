"""Asks the NVIDIA driver for its devices, through NVIDIA's own bindings.

`python -m jupyter_to_job.backends.local.nvml` prints a JSON object: resource name to device ids.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from itertools import chain, takewhile

import pynvml

from .gpus import GPU, MIG, VISIBLE

_INSIDE_A_JOB = "JUPYTER_TO_JOB_ATTEMPT"

_Device = tuple[str, str]
"""A resource, as Kubernetes' device plugin names it, and a device's UUID."""


def ask_driver() -> list[list[_Device]]:
    """Return each GPU as what is given out of it: itself, or its partitions; in NVML's order."""
    pynvml.nvmlInit()
    return [
        list(_devices(pynvml.nvmlDeviceGetHandleByIndex(index)))
        for index in range(pynvml.nvmlDeviceGetCount())
    ]


def visible(gpus: list[list[_Device]], environ: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the ids of the devices that the environment leaves to us, by resource.

    Somebody whose share of a machine is set by CUDA_VISIBLE_DEVICES lends out that share, as CUDA
    reads it: up to the first name that is wrong. A job that submits another one sees its own
    devices only, and there the rest counts, too.
    """
    devices = [device for gpu in gpus for device in gpu]
    if VISIBLE in environ and _INSIDE_A_JOB not in environ:
        named = (_named(name.strip(), gpus) for name in environ[VISIBLE].split(","))
        devices = list(dict.fromkeys(chain.from_iterable(takewhile(bool, named))))
    found: dict[str, list[str]] = {}
    for resource, uuid in devices:
        found.setdefault(resource, []).append(uuid)
    return found


def _named(name: str, gpus: list[list[_Device]]) -> list[_Device]:
    """Return the one device of an index, or of the beginning of a UUID; none if that is wrong."""
    if name.isdecimal():
        return [device for gpu in gpus[int(name) :][:1] for device in gpu[:1]]
    known = [device for gpu in gpus for device in gpu if name and device[1].startswith(name)]
    return known[:1]


def _devices(gpu: object) -> Iterator[_Device]:
    if not _partitioned(gpu):
        yield GPU, _text(pynvml.nvmlDeviceGetUUID(gpu))
        return
    for part in _partitions(gpu):
        profile = _text(pynvml.nvmlDeviceGetName(part)).rpartition("MIG ")[2].strip()
        yield MIG + profile.replace("+", "."), _text(pynvml.nvmlDeviceGetUUID(part))


def _partitioned(gpu: object) -> bool:
    """Tell whether a GPU is in MIG mode: then it is given out in parts, never whole."""
    try:
        return bool(pynvml.nvmlDeviceGetMigMode(gpu)[0])
    except pynvml.NVMLError:  # a GPU, or a driver, that has no such thing
        return False


def _partitions(gpu: object) -> Iterator[object]:
    for index in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
        with contextlib.suppress(pynvml.NVMLError_NotFound):
            yield pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index)


def _text(value: str | bytes) -> str:
    """Return text: NVML's bindings answered with bytes for a long time."""
    return value.decode() if isinstance(value, bytes) else value


if __name__ == "__main__":
    sys.stdout.write(json.dumps(visible(ask_driver(), dict(os.environ))))
