"""Where built things are kept between runs. It may help, and is never needed.

A thing is built in a temporary directory beside its place and renamed there when whole: a build
that is killed leaves nothing that looks finished, and of two at once the second waits. What
nobody has used for two weeks goes when something new is built beside it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

UNUSED_SECONDS = 14 * 24 * 3600


def cache_root() -> Path:
    """`${XDG_CACHE_HOME:-~/.cache}/jupyter-to-job`; not created here."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "jupyter-to-job"


def build_once(place: Path, build: Callable[[Path], None]) -> Path:
    """`place`, filled by `build(directory)` unless an earlier run did; whole or not there."""
    if place.is_dir():
        os.utime(place)  # the time of its last use
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with (place.parent / f".{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if place.is_dir():
            return place
        for abandoned in place.parent.glob(f".{place.name}.tmp-*"):
            shutil.rmtree(abandoned)  # we hold the lock: its builder was killed
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
            continue  # another process prunes too
        if unused > UNUSED_SECONDS:
            shutil.rmtree(place, ignore_errors=True)
