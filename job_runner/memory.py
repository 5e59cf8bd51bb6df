"""What the host says about memory: how much there is, and whether it killed for it.

From our control group, version 1 or 2, where there is one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

_CGROUP = Path("/sys/fs/cgroup")
_SELF = Path("/proc/self/cgroup")


@dataclass(frozen=True)
class Figures:
    """How a run stood with memory: the bytes it used at most, and those it could have had.

    `kills` is how many processes of its control group were killed for memory since it began;
    `near` whether it was close enough to the limit to be killed for that.
    """

    used: int
    limit: int
    kills: int = 0
    near: bool = False


def ceiling(limit: int | None, root: Path = _CGROUP, own: Path = _SELF) -> int:
    """Return the bytes at which a run is out of memory: the least of its limit and the host's."""
    known = [psutil.virtual_memory().total, *([] if limit is None else [limit])]
    return min([*known, *_numbers(_files(root, own, "memory.max", "memory.limit_in_bytes"))])


def peak(root: Path = _CGROUP, own: Path = _SELF) -> int | None:
    """Return the most bytes that our control group ever held; None where it does not tell."""
    return next(_numbers(_files(root, own, "memory.peak", "memory.max_usage_in_bytes")), None)


def oom_kills(root: Path = _CGROUP, own: Path = _SELF) -> int:
    """Return how often this process's control group was killed in for memory; 0 if unknown."""
    for path in _files(root, own, "memory.events", "memory.oom_control"):
        with contextlib.suppress(OSError, ValueError):
            for line in path.read_text().splitlines():
                name, _, value = line.partition(" ")
                if name == "oom_kill":
                    return int(value)
    return 0


def _numbers(paths: list[Path]) -> Iterator[int]:
    for path in paths:
        with contextlib.suppress(OSError, ValueError):  # `max`, where there is no limit
            yield int(path.read_text())


def _files(root: Path, own: Path, unified: str, legacy: str) -> list[Path]:
    """List where a file of version 2 or 1 may be: in our own group, and in those around it.

    In a container the path that the kernel tells may lie outside of what is mounted, and the root
    that we see is our own group.
    """
    files = []
    with contextlib.suppress(OSError):
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            inside = Path(path.lstrip("/"))
            if controllers == "":
                files += [root / part / unified for part in (inside, *inside.parents)]
            elif "memory" in controllers.split(","):
                folder = root / "memory"
                files += [folder / part / legacy for part in (inside, *inside.parents)]
    return list(dict.fromkeys(files))
