"""Whether the host killed for memory: the counter of our control group, version 1 and 2."""

from __future__ import annotations

import contextlib
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_SELF = Path("/proc/self/cgroup")


def oom_kills(root: Path = _CGROUP, own: Path = _SELF) -> int:
    """Return how often this process's control group was killed in for memory; 0 if unknown."""
    for path in _event_files(root, own):
        with contextlib.suppress(OSError, ValueError):
            for line in path.read_text().splitlines():
                name, _, value = line.partition(" ")
                if name == "oom_kill":
                    return int(value)
    return 0


def _event_files(root: Path, own: Path) -> list[Path]:
    """List where the count may be: the group's own files, then those of the root that we see.

    In a container the path that the kernel tells may lie outside of what is mounted.
    """
    files = []
    with contextlib.suppress(OSError):
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            inside = path.lstrip("/")
            if controllers == "":
                files += [root / inside / "memory.events", root / "memory.events"]
            elif "memory" in controllers.split(","):
                folder = root / "memory"
                files += [folder / inside / "memory.oom_control", folder / "memory.oom_control"]
    return files
