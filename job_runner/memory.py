"""What the host says about memory: how much there is, and whether it killed for it.

From our control group, version 1 or 2, where there is one.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import psutil

_CGROUP = Path("/sys/fs/cgroup")
_SELF = Path("/proc/self/cgroup")


def ceiling(limit: int | None, root: Path = _CGROUP, own: Path = _SELF) -> int:
    """Return the bytes at which a run is out of memory: the least of its limit and the host's."""
    known = [psutil.virtual_memory().total, *([] if limit is None else [limit])]
    for path in _files(root, own, "memory.max", "memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # `max`, where there is no limit
            known.append(int(path.read_text()))
    return min(known)


def oom_kills(root: Path = _CGROUP, own: Path = _SELF) -> int:
    """Return how often this process's control group was killed in for memory; 0 if unknown."""
    for path in _files(root, own, "memory.events", "memory.oom_control"):
        with contextlib.suppress(OSError, ValueError):
            for line in path.read_text().splitlines():
                name, _, value = line.partition(" ")
                if name == "oom_kill":
                    return int(value)
    return 0


def _files(root: Path, own: Path, unified: str, legacy: str) -> list[Path]:
    """List where a file of version 2 or 1 may be: our own group's, then that of the root we see.

    In a container the path that the kernel tells may lie outside of what is mounted.
    """
    files = []
    with contextlib.suppress(OSError):
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            inside = path.lstrip("/")
            if controllers == "":
                files += [root / inside / unified, root / unified]
            elif "memory" in controllers.split(","):
                folder = root / "memory"
                files += [folder / inside / legacy, folder / legacy]
    return files
