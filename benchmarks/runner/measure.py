"""One command, measured from outside: wall time, its processor time, its own peak memory.

Linux only: the figures of the runner alone, without its kernel, are read from /proc.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

from ..machine import caller_environment

_SAMPLING_INTERVAL = 0.02
"""Seconds between looks at the peak memory: what is allocated after the last one is not seen."""
_TICK = 1 / os.sysconf("SC_CLK_TCK")
LOG = "log"
SOURCE = "in.ipynb"


@dataclass(frozen=True)
class Run:
    """One execution. `cpu` is the runner's own, `cpu_all` with the kernel; `memory` in bytes."""

    wall: float
    cpu: float
    cpu_all: float
    memory: int
    exit_code: int

    def to_json(self) -> dict[str, float]:
        return asdict(self)


@dataclass
class RunFolders:
    """A folder for each run below `root`, and a home that no run shares with the user."""

    root: Path
    _made: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.home = self.root / "home"
        self.home.mkdir()

    def fresh(self, cells: Iterable[str]) -> Path:
        """Make a folder that holds one notebook of these cells."""
        self._made += 1
        folder = self.root / f"run-{self._made}"
        folder.mkdir()
        (folder / SOURCE).write_text(notebook(cells))
        return folder

    def environment(self, more: dict[str, str]) -> dict[str, str]:
        return {**caller_environment(), "HOME": str(self.home), **more}


class Markdown(str):
    """The text of a cell that is not run."""

    __slots__ = ()


def notebook(cells: Iterable[str]) -> str:
    """Return a Python notebook of these cells as JSON."""
    made = [_cell(f"cell-{number}", source) for number, source in enumerate(cells)]
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    whole = {"metadata": {"kernelspec": spec}, "nbformat": 4, "nbformat_minor": 5, "cells": made}
    return json.dumps(whole)


def _cell(name: str, source: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": "markdown", "id": name, "source": source, "metadata": {}}
    if not isinstance(source, Markdown):
        cell |= {"cell_type": "code", "outputs": [], "execution_count": None}
    return cell


def start(
    command: Sequence[str], folder: Path, environment: dict[str, str]
) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own; what it says goes to the folder's log."""
    with (folder / LOG).open("wb") as log:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def last_log_line(folder: Path) -> str:
    """Return the last line that a command said."""
    lines = (folder / LOG).read_text(errors="replace").split("\n")
    return next((line.strip()[-200:] for line in reversed(lines) if line.strip()), "")


def measure(command: Sequence[str], folder: Path, environment: dict[str, str], limit: float) -> Run:
    """Run a command to its end. After `limit` seconds it is killed, with all that it started."""
    began = time.perf_counter()
    process = start(command, folder, environment)
    memory = _wait(process, limit)
    wall = time.perf_counter() - began
    cpu = _own_cpu(process.pid)
    # Children count in as far as their parent has waited for them.
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Run(wall, cpu, usage.ru_utime + usage.ru_stime, memory, process.returncode)


def _wait(process: subprocess.Popen[bytes], limit: float) -> int:
    """Wait until a process has ended, not reaping it; return its peak memory."""
    peak = 0
    end = time.monotonic() + limit
    pidfd = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        while not poll.poll(_SAMPLING_INTERVAL * 1000):
            peak = max(peak, _peak_memory(process.pid))
            if time.monotonic() > end:
                kill_tree(process.pid)
    finally:
        os.close(pidfd)
    return peak


def _peak_memory(pid: int) -> int:
    """Return a process's own high-water mark; 0 when it is just ending."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def _own_cpu(pid: int) -> float:
    """Return the processor seconds of a process that has ended and was not waited for yet."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK


def kill_tree(pid: int) -> None:
    """Kill a process and its descendants, kernels included: they lead sessions of their own."""
    with contextlib.suppress(psutil.NoSuchProcess):
        leader = psutil.Process(pid)
        for process in [leader, *leader.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
