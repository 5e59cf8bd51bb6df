"""The most memory that processes of the box have at a time: they are this machine's processes."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

INTERVAL = 0.02
"""Seconds between two looks. The kernel keeps the peak of a process until it ends."""


def peak_memory(pid: int | None) -> int:
    """Return the most memory that a process had at a time, in bytes; 0 if there is none."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+)", status)
    return int(found[1]) << 10 if found else 0


def command_lines() -> Iterator[tuple[int, bytes]]:
    """Yield each process of this machine with its command line, the words divided by zeros."""
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                yield int(process.name), (process / "cmdline").read_bytes()
            except OSError:  # it has ended
                continue


@contextmanager
def peaks_of(kinds: Mapping[str, tuple[bytes, ...]]) -> Iterator[dict[str, int]]:
    """Yield the peaks, in bytes, of kinds of processes that run while the context lasts.

    A process is of a kind if its command line has all of the kind's parts.
    """
    peaks = dict.fromkeys(kinds, 0)
    enough = threading.Event()

    def look() -> None:
        while not enough.wait(INTERVAL):
            for pid, line in command_lines():
                for kind, parts in kinds.items():
                    if all(part in line for part in parts):
                        peaks[kind] = max(peaks[kind], peak_memory(pid))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield peaks
    finally:
        enough.set()
        looking.join()
