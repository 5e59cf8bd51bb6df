"""The GPUs and MIG devices of this machine, found without trusting the driver to answer.

`nvml` asks it, in a process of its own: a driver that hangs, hangs only that. Where no driver
library is installed, nothing is started.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-"
"""The resources whose devices can be told apart and given out one by one."""
VISIBLE = "CUDA_VISIBLE_DEVICES"
ORDER = "CUDA_DEVICE_ORDER"
BOUND = 10.0
"""Seconds that the driver has to answer: with nobody else using it, it wakes up each GPU first."""
_LIBRARY = "libnvidia-ml.so.1"

Devices = dict[str, tuple[str, ...]]


def is_device(resource: str) -> bool:
    """Tell whether a resource's units are devices that a process can be shown or not."""
    return resource == GPU or resource.startswith(MIG)


def driver_present() -> bool:
    """Tell whether the driver's library is installed; it is loaded, and asked nothing."""
    import ctypes

    try:
        ctypes.CDLL(_LIBRARY)
    except OSError:
        return False
    return True


class Probe:
    """One question to the driver."""

    def __init__(self) -> None:
        self.trouble = ""
        """Why there is no answer; "" if there is one."""
        self._found: Devices | None = None
        self._end = time.monotonic() + BOUND
        self._process: subprocess.Popen[bytes] | None = None
        if not driver_present():
            self._found = {}
            return
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.nvml"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def found(self, wait: float = 0.0) -> Devices | None:
        """Return the devices by resource, or None while the driver has not answered yet."""
        if self._found is None and self._process is not None:
            # Its answer is smaller than a pipe holds, so it ends whether we read or not.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(wait)
            if self._process.poll() is not None:
                self._read(*self._process.communicate())
            elif time.monotonic() > self._end:
                self._process.kill()  # which a hung driver ignores: nobody waits for its end
                self._give_up(f"did not answer within {BOUND:g} s")
        return self._found

    def _read(self, out: bytes, err: bytes) -> None:
        try:
            self._found = {str(k): tuple(map(str, v)) for k, v in json.loads(out).items()}
        except ValueError:
            last = err.decode(errors="replace").strip().splitlines()[-1:]
            self._give_up(f"cannot be asked: {''.join(last) or 'it ended without an answer'}")

    def _give_up(self, why: str) -> None:
        self.trouble, self._found = f"the NVIDIA driver {why}", {}
