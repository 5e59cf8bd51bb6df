"""Which processes belong to a server, and how much memory they have, by the home they inherit."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

_TICK = 1 / os.sysconf("SC_CLK_TCK")
MAX_SAMPLING_SHARE = 0.1
"""Of one processor that looking may cost."""
MIN_SAMPLING_INTERVAL = 0.1
"""Seconds between two looks."""
RESIDENT = (b"jupyter_to_job.dispatcher\0", b"multiprocessing.resource_tracker")
"""In the command lines of what stays when a job has ended."""


class ServerProcesses:
    """Finds the processes whose HOME is `home`; nobody else on the machine has it."""

    def __init__(self, home: Path) -> None:
        self._variable = b"\0HOME=" + os.fsencode(home) + b"\0"
        self._belongs: dict[tuple[str, bytes], bool] = {}

    def pids(self) -> list[str]:
        """Return the processes of this home."""
        return list(self._alive())

    def is_busy(self, server: int) -> bool:
        """Tell whether there is any process but the server and what stays."""
        parents = {pid: status[1].decode() for pid, status in self._stats() if status[0] != b"Z"}
        lines = {pid: _read(pid, "cmdline") for pid in parents if int(pid) != server}
        stay = {pid for pid, line in lines.items() if any(name in line for name in RESIDENT)}
        # A copy of what stays has its command line, and does not stay.
        return any(line and (pid not in stay or parents[pid] in stay)
                   for pid, line in lines.items())  # fmt: skip

    def memory(self) -> tuple[int, int]:
        """Return the sum of PSS in bytes, and of how many processes."""
        sizes = [_pss(pid) for pid in self._alive()]
        return sum(sizes), sum(size > 0 for size in sizes)

    def cpu(self) -> float:
        """Return the processor time, in seconds, of these processes and of those they waited for.

        Who ended and was not waited for yet counts, too, if a look before saw it.
        """
        return sum(sum(map(int, status[11:15])) for _, status in self._stats()) * _TICK

    def _alive(self) -> Iterator[str]:
        return (pid for pid, status in self._stats() if status[0] != b"Z")

    def _stats(self) -> Iterator[tuple[str, list[bytes]]]:
        """Yield number and status of each process."""
        seen: dict[tuple[str, bytes], bool] = {}
        for pid in [path.name for path in Path("/proc").iterdir() if path.name.isdigit()]:
            status = _read(pid, "stat").rpartition(b")")[2].split()
            if len(status) < 20:
                continue
            key = (pid, status[19])  # when it began: another one had its number before
            if key not in self._belongs:
                self._belongs[key] = self._variable in b"\0" + _read(pid, "environ")
            seen[key] = self._belongs[key]
            if seen[key]:
                yield pid, status
        self._belongs = seen


class PeakSampler(threading.Thread):
    """Notes the peak of memory, and of processes, until it is told to `stop`."""

    def __init__(self, processes: ServerProcesses) -> None:
        super().__init__(daemon=True)
        self._processes = processes
        self._stopping = threading.Event()
        self.memory = self.processes = self.samples = 0

    def run(self) -> None:
        """Look again and again."""
        elapsed = 0.0
        while not self._stopping.wait(
            max(MIN_SAMPLING_INTERVAL, elapsed / MAX_SAMPLING_SHARE - elapsed)
        ):
            began = time.perf_counter()
            memory, processes = self._processes.memory()
            self.memory = max(self.memory, memory)
            self.processes = max(self.processes, processes)
            self.samples += 1
            elapsed = time.perf_counter() - began

    def stop(self) -> None:
        """Look no more."""
        self._stopping.set()
        self.join()


def _read(pid: str, name: str) -> bytes:
    try:
        return Path("/proc", pid, name).read_bytes()
    except OSError:  # gone, or somebody else's
        return b""


def _pss(pid: str) -> int:
    for line in _read(pid, "smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return 0
