"""The most memory that processes of the box have at a time: they are this machine's processes.

This module is also a program, which `peaks_of` starts. A thread of the tests would often wait for
the many others there, and a process that lives for half a second ended between two of its looks.
"""

from __future__ import annotations

import json
import re
import select
import subprocess
import sys
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
    """Yield the peaks of kinds of processes that run while the context lasts.

    A process is of a kind if its command line has all of the kind's parts. The peaks, in bytes, are
    known when the context has ended.
    """
    peaks: dict[str, int] = {}
    asked = {kind: [part.decode() for part in parts] for kind, parts in kinds.items()}
    with subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Linux shares the processors among sessions
    ) as looking:
        assert looking.stdin is not None
        assert looking.stdout is not None
        looking.stdin.write(json.dumps(asked) + "\n")
        looking.stdin.flush()
        assert looking.stdout.readline(), "nobody looks"
        try:
            yield peaks
        finally:
            looking.stdin.close()
            peaks.update(json.load(looking.stdout))


def look() -> None:
    """Look at the kinds that the first line of the input asks for, until the input ends."""
    asked = json.loads(sys.stdin.readline())
    kinds = {kind: [part.encode() for part in parts] for kind, parts in asked.items()}
    peaks = dict.fromkeys(kinds, 0)
    print("looking", flush=True)  # noqa: T201
    while not select.select([sys.stdin], [], [], INTERVAL)[0]:
        for pid, line in command_lines():
            for kind, parts in kinds.items():
                if all(part in line for part in parts):
                    peaks[kind] = max(peaks[kind], peak_memory(pid))
    print(json.dumps(peaks))  # noqa: T201


if __name__ == "__main__":
    look()
