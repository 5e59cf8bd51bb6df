"""Asks the NVIDIA driver for its devices, through NVIDIA's own bindings.

`python -m jupyter_to_job.backends.local.nvml` prints a JSON object: resource name to device ids.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping

import pynvml

from .gpus import GPU, MIG, VISIBLE

_INSIDE_A_JOB = "JUPYTER_TO_JOB_ATTEMPT"


def ask_driver() -> dict[str, list[str]]:
    """Return the ids of all devices by resource name, as Kubernetes' device plugin names them."""
    found: dict[str, list[str]] = {}
    pynvml.nvmlInit()
    for index in range(pynvml.nvmlDeviceGetCount()):
        gpu = pynvml.nvmlDeviceGetHandleByIndex(index)
        if not _partitioned(gpu):
            found.setdefault(GPU, []).append(_text(pynvml.nvmlDeviceGetUUID(gpu)))
            continue
        for part in _partitions(gpu):
            profile = _text(pynvml.nvmlDeviceGetName(part)).rpartition("MIG ")[2].strip()
            name = MIG + profile.replace("+", ".")
            found.setdefault(name, []).append(_text(pynvml.nvmlDeviceGetUUID(part)))
    return found


def visible(found: dict[str, list[str]], environ: Mapping[str, str]) -> dict[str, list[str]]:
    """Keep the devices that the environment leaves to us, as CUDA reads it.

    Somebody whose share of a machine is set by CUDA_VISIBLE_DEVICES lends out that share. A job
    that submits another one sees its own devices only, and there the rest counts, too.
    """
    shown = environ.get(VISIBLE)
    if shown is None or _INSIDE_A_JOB in environ:
        return found
    words = [word.strip() for word in shown.split(",") if word.strip()]
    gpus = found.get(GPU, [])
    by_index = {gpus[int(w)] for w in words if w.isdecimal() and int(w) < len(gpus)}

    def kept(device: str) -> bool:
        named = any(device.startswith(word) for word in words if not word.isdecimal())
        return named or device in by_index

    return {name: [d for d in devices if kept(d)] for name, devices in found.items()}


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
