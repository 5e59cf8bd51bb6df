"""A pretended /proc with control groups of both versions, for tests of what a process may use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

MOUNTS = (
    "29 23 0:26 / {root} rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
    "35 31 0:32 / {root}/memory rw - cgroup cgroup rw,memory\n"
)


def build(root: Path, memberships: str, files: Mapping[str, str]) -> Path:
    """Write control groups below `root`, version 1's below `memory`; return the /proc."""
    process = root / "proc" / "self"
    process.mkdir(parents=True)
    (process / "cgroup").write_text(memberships)
    (process / "mountinfo").write_text(MOUNTS.format(root=root))
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return process.parent
