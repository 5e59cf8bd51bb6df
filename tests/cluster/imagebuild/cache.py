"""A cache of build results, to save time between builds.

A result is built in a temporary directory and renamed when it is complete, so that a killed build
leaves nothing that looks finished. Of two builds of one result the second waits for the first.
Results that were not used for two weeks are deleted when another one is built beside them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

MAX_UNUSED_SECONDS = 14 * 24 * 3600


def cache_root() -> Path:
    """Return `${XDG_CACHE_HOME:-~/.cache}/jupyter-to-job`, without creating it."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "jupyter-to-job"


def build_once(place: Path, build: Callable[[Path], None]) -> Path:
    """Return `place`, after `build(directory)` has filled it unless it exists already."""
    if place.is_dir():
        os.utime(place)  # records its last use
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with (place.parent / f".{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if place.is_dir():
            return place
        for abandoned in place.parent.glob(f".{place.name}.tmp-*"):
            shutil.rmtree(abandoned)  # we hold the lock, so its build was killed
        temporary = Path(tempfile.mkdtemp(prefix=f".{place.name}.tmp-", dir=place.parent))
        try:
            build(temporary)
            temporary.chmod(0o755)
            temporary.rename(place)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    _prune(place.parent)
    return place


def _prune(directory: Path) -> None:
    for place in directory.glob("[!.]*"):
        try:
            unused = time.time() - place.stat().st_mtime
        except FileNotFoundError:
            continue  # another process deleted it
        if unused > MAX_UNUSED_SECONDS:
            shutil.rmtree(place, ignore_errors=True)
