"""Signs published results with the user's notary, so that Jupyter shows their outputs as trusted.

Importing nbformat takes longer than publishing most results, and signing takes several times a
large notebook's size in memory. So a process of its own signs, and no error there fails a delivery.
The publisher waits for it a moment, because users open a delivered notebook at once. A dispatcher,
which signs many results, imports nbformat once (`preload`), and forks.
"""

from __future__ import annotations

import contextlib
import hashlib
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from job_runner.notebook.lazy_imports import stub_format_libraries

from ..paths import open_regular

_TIMEOUT = 2.0
"""Seconds to wait for a signature."""
_MAX_WAITED_SIZE = 8 << 20
"""Bytes of a notebook whose signature is waited for: a larger one takes long to open, too."""

MAX_SIGNED = 2 << 30
"""Bytes of a notebook that is signed at most: signing takes several times that in memory."""
MAX_SIGNED_IN_POD = 30 << 20
"""The same in a dev pod: one that takes more memory than it may ends, with all kernels in it."""

_started: list[subprocess.Popen[bytes]] = []
"""Processes that are not reaped yet: a server must leave no zombies."""
_is_imported = False
"""Whether forks of this process can sign: it has one thread, and imported nbformat."""


def preload() -> None:
    """Import what signing needs, so that forks sign from now on; for a process of one thread."""
    global _is_imported
    with contextlib.suppress(Exception):
        _import()
        _is_imported = True


def sign(path: Path, sha256: str, max_size: int = MAX_SIGNED) -> bool:
    """Start a process that signs the notebook at `path`; wait for it unless that takes long.

    It signs only what has this digest: in a shared folder somebody else may replace the file. False
    if it has more than `max_size` bytes, and is left without a signature.
    """
    with contextlib.suppress(Exception):
        size = path.stat().st_size
        if size > max_size:
            return False
        wait = (_fork if _is_imported else _start)(path, sha256, size)
        if size <= _MAX_WAITED_SIZE:
            wait(_TIMEOUT)
    return True


def _fork(path: Path, sha256: str, size: int) -> Callable[[float], object]:
    # Not in this process: a database of signatures on a network disk may hang for ever.
    process = multiprocessing.get_context("fork").Process(target=_sign, args=(path, sha256, size))
    process.start()
    return process.join


def _start(path: Path, sha256: str, size: int) -> Callable[[float], object]:
    _started[:] = [process for process in _started if process.poll() is None]
    # A session of its own: Ctrl-C ends a command that waits for a job, but not its signing.
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, path.absolute(), sha256, str(size)],
        cwd="/",  # with `-m` a user's file there could shadow a module
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    _started.append(process)
    return process.wait


def main(path: str, sha256: str, size: str) -> None:
    """Sign one notebook, if it has this digest."""
    _import()
    _sign(Path(path), sha256, int(size))


def _import() -> None:
    stub_format_libraries()  # they take about half a second
    import multiprocessing.connection
    import multiprocessing.popen_fork  # noqa: F401 - `Process` imports both late

    import nbformat.sign  # noqa: F401


def _sign(path: Path, sha256: str, size: int) -> None:
    os.nice(5)  # the runs of other jobs have priority
    import nbformat
    from nbformat.sign import NotebookNotary

    with open_regular(str(path), path.name) as file:  # somebody may have put something else there
        content = file.read(size)
    if hashlib.sha256(content).hexdigest() == sha256:
        # Jupyter Server reads a notebook in the same way before it checks the signature.
        NotebookNotary().sign(nbformat.reads(content.decode(), as_version=4))


if __name__ == "__main__":
    main(*sys.argv[1:])
