"""The GPUs and MIG devices of this machine, found without trusting the driver to answer.

A process of its own (`nvml`) asks the driver, so that a driver that hangs blocks nothing else. It
is not started where the driver's library is missing.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time

from job_runner.host.gpu_devices import is_driver_installed

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-"
"""The resources whose devices can be told apart and given out one by one."""
DRIVER_TIMEOUT = 10.0
"""Seconds that the driver has to answer. An unused driver wakes up each GPU first."""

Devices = dict[str, tuple[str, ...]]


def is_device(resource: str) -> bool:
    """Tell whether a resource's units are devices that can be hidden from a process."""
    return resource == GPU or resource.startswith(MIG)


class Probe:
    """One query of the driver, which may take its time."""

    def __init__(self) -> None:
        self.problem = ""
        """Why there is no answer; "" if there is one."""
        self._devices: Devices | None = None
        self._deadline = time.monotonic() + DRIVER_TIMEOUT
        self._process: subprocess.Popen[bytes] | None = None
        if not is_driver_installed():
            self._devices = {}
            return
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.nvml"],
            cwd="/",  # `-m` looks for modules here first, and users have files of any name
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def devices(self, wait: float = 0.0) -> Devices | None:
        """Return the devices by resource, or None while the driver has not answered yet."""
        if self._devices is None and self._process is not None:
            # The answer fits into the pipe, so the process ends before anybody reads it.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(wait)
            if self._process.poll() is not None:
                self._read(*self._process.communicate())
            elif time.monotonic() > self._deadline:
                self._process.kill()  # a process that hangs in the driver ignores it: do not wait
                self._fail(f"did not answer within {DRIVER_TIMEOUT:g} s")
        return self._devices

    def _read(self, out: bytes, err: bytes) -> None:
        try:
            self._devices = {str(k): tuple(map(str, v)) for k, v in json.loads(out).items()}
        except ValueError:
            last_line = err.decode(errors="replace").strip().splitlines()[-1:]
            self._fail(f"cannot be asked: {''.join(last_line) or 'it ended without an answer'}")

    def _fail(self, reason: str) -> None:
        self.problem, self._devices = f"the NVIDIA driver {reason}", {}
