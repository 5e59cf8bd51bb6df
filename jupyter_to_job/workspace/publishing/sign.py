"""Signs published results with the user's notary, so that Jupyter shows their outputs as trusted.

nbformat takes longer to import than most results to publish, and several times a large notebook's
size in memory. So a process of its own does it, and whatever fails there fails no delivery. It is
waited for a moment: who is told of a delivery opens the notebook at once. Where many are signed one
after the other nbformat is imported before, and that process is a copy of ours.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from job_runner.notebook.lazy_imports import stub_format_libraries

_PATIENCE = 2.0
"""Seconds to wait for a signature ..."""
_WAITED_FOR = 8 << 20
"""... of a notebook that has at most so many bytes: a large one takes its time to open, too."""

_started: list[subprocess.Popen[bytes]] = []
"""What was started and not yet seen to have ended: a server is to leave no zombies."""
_is_imported = False
"""Whether copies of this process can sign: it has one thread, and what it takes."""


def import_ahead() -> None:
    """Import what signing needs, for all that is signed from now on; for who has one thread."""
    global _is_imported
    with contextlib.suppress(Exception):
        _import()
        _is_imported = True


def sign(path: Path) -> None:
    """Have the notebook at `path` signed: now, or soon where that takes long."""
    with contextlib.suppress(Exception):
        wait = _copy(path) if _is_imported else _start(path)
        if path.stat().st_size <= _WAITED_FOR:
            wait(_PATIENCE)


def _copy(path: Path) -> Callable[[float], object]:
    # Never in this process: a database of signatures on a network disk may hang for ever.
    process = multiprocessing.get_context("fork").Process(target=_sign, args=(path,))
    process.start()
    return process.join


def _start(path: Path) -> Callable[[float], object]:
    _started[:] = [process for process in _started if process.poll() is None]
    # A session of its own: Ctrl-C ends who waits for a job, not what was begun for it.
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, path.absolute()],
        cwd="/",  # `-m` looks for modules here first, and notebooks have files of any name
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    _started.append(process)
    return process.wait


def main(path: str) -> None:
    """Sign one notebook."""
    _import()
    _sign(Path(path))


def _import() -> None:
    stub_format_libraries()  # they take about half a second
    import nbformat.sign  # noqa: F401


def _sign(path: Path) -> None:
    os.nice(5)  # the runs of other jobs come first
    import nbformat
    from nbformat.sign import NotebookNotary

    # As Jupyter Server reads it before it asks whether it is signed.
    NotebookNotary().sign(nbformat.read(path, as_version=4))


if __name__ == "__main__":
    main(sys.argv[1])
