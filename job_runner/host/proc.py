"""Fields of /proc/<pid>/stat, in which Linux describes a process (proc(5))."""

from __future__ import annotations

import os
from pathlib import Path

PROC = Path("/proc")
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
"""Parts of a second in which /proc counts processor time."""

CPU_TIMES = slice(11, 15)
"""Of a process: user and system; of its children that it waited for: user and system."""
START_TIME = 19
ARGUMENTS = slice(45, 47)
"""Addresses of the memory that holds the command line: its begin and its end."""


def stat_fields(pid: int | str) -> list[bytes]:
    """Return the fields after the process's name: field n of proc(5) has the index n - 3.

    `pid` may be "self". Raises OSError if there is no such process, or no /proc.
    """
    # The name stands in brackets and may hold anything, brackets and spaces too.
    return read_file(f"{PROC}/{pid}/stat").rpartition(b")")[2].split()


def read_file(path: str) -> bytes:
    """Return the content of a short file. A file object would take longer than the system calls."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        # The groups of a user may fill any number of pages of `status`, before the memory.
        return b"".join(iter(lambda: os.read(descriptor, 4096), b""))
    finally:
        os.close(descriptor)
