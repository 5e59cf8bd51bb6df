"""A small disk that a test fills up, with bytes or with files."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

FULL_OF = ("bytes", "inodes")


@contextlib.contextmanager
def small_disk(path: Path, size: str = "32m") -> Iterator[Path]:
    """Mount a disk of `size` and 4000 inodes at `path`, or skip the test."""
    path.mkdir()
    options = f"size={size},nr_inodes=4000,mode=0700"
    mount = ["mount", "-t", "tmpfs", "-o", options, "none", str(path)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk takes root")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=True)


def fill(disk: Path, kind: str, left: int = 0) -> None:
    """Take all bytes, or all inodes, of a disk, but for so many blocks or inodes."""
    filler = disk / "filler"
    filler.mkdir()
    file = (filler / "file").open("wb", buffering=0)
    with file, contextlib.suppress(OSError):
        while kind == "bytes":
            file.write(b"x" * 4096)
        for number in range(4000):
            (filler / str(number)).touch()
    if kind == "bytes":
        os.truncate(filler / "file", (filler / "file").stat().st_size - left * 4096)
    for number in range(left if kind == "inodes" else 0):
        (filler / str(number)).unlink()
