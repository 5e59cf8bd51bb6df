"""The GPU as the driver shows it, beside our own reading of it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pynvml

GIB = 1 << 30
_INTERVAL = 0.02
_HOLD = """\
import sys, torch
amount = int(sys.argv[1])
free = torch.cuda.mem_get_info()[0]
kept = torch.empty(amount if amount > 0 else free + amount, dtype=torch.uint8, device='cuda')
print('held', flush=True)
sys.stdin.read()
"""


class Card:
    """The first GPU of this machine."""

    def __init__(self) -> None:
        pynvml.nvmlInit()
        self._handle: Any = pynvml.nvmlDeviceGetHandleByIndex(0)
        self.uuid: str = pynvml.nvmlDeviceGetUUID(self._handle)
        self.name: str = pynvml.nvmlDeviceGetName(self._handle)

    def describe(self) -> str:
        memory = pynvml.nvmlDeviceGetMemoryInfo(self._handle, version=pynvml.nvmlMemory_v2)
        plain = pynvml.nvmlDeviceGetMemoryInfo(self._handle)
        driver = pynvml.nvmlSystemGetDriverVersion()
        return (
            f"{self.name}, {self.uuid}, {memory.total / GIB:.1f} GiB, driver {driver}; "
            f"in use {memory.used >> 20} MiB, with the driver's reserve {plain.used >> 20} MiB"
        )

    def processes(self) -> dict[int, int]:
        """Return the bytes that each process holds, by the ids that the driver knows."""
        running = pynvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
        return {process.pid: process.usedGpuMemory or 0 for process in running}

    def used(self) -> int:
        """Return the bytes in use, as `nvidia-smi` shows them."""
        info = pynvml.nvmlDeviceGetMemoryInfo(self._handle, version=pynvml.nvmlMemory_v2)
        return int(info.used)

    def is_free(self) -> bool:
        return not self.processes() and self.used() < GIB

    def wait_until_free(self, timeout: float = 30.0) -> bool:
        end = time.monotonic() + timeout
        while not self.is_free() and time.monotonic() < end:
            time.sleep(_INTERVAL)
        return self.is_free()


class FreeWatch:
    """Watches the GPU from a thread; `since` is when it was last seen to become free."""

    def __init__(self, card: Card) -> None:
        self._card = card
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.since: float | None = None

    def __enter__(self) -> FreeWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._closed.wait(_INTERVAL):
            if not self._card.is_free():
                self.since = None
            elif self.since is None:
                self.since = time.time()


@contextmanager
def held_by_another(amount: int) -> Iterator[None]:
    """Have a process that is no job hold `amount` bytes, or all but that many if it is negative."""
    command = [sys.executable, "-c", _HOLD, str(amount)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"held\n"
        try:
            yield
        finally:
            process.stdin.close()
            process.wait(30)
