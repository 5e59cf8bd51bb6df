"""Removes what a dead runner may leave behind: processes that a notebook started, and sockets.

A kernel dies with its runner. A background process of the notebook does not, and may hold a GPU. It
is recognised by its session, which the kernel led, and by the mark in its environment, because
another process may have the session's number by now. A process with its own session is left alone.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

ATTEMPT_VARIABLE = "JUPYTER_TO_JOB_ATTEMPT"
"""The variable in a kernel's environment that names the attempt's directory."""
TERMINATION_LOG = "JUPYTER_TO_JOB_TERMINATION_LOG"
"""The variable in the runner's that names a file for a summary; the notebook does not get it."""
SOCKET_DIR_PREFIX = "job-runner-"
"""How the names of the folders with kernels' sockets begin."""


def end_session(session: int, mark: str) -> None:
    """Kill every process of a kernel's session that carries `mark`."""
    import psutil  # not before the kernel was started

    for pid in psutil.pids():
        with contextlib.suppress(psutil.Error, OSError):
            if os.getsid(pid) != session or pid == os.getpid():
                continue
            process = psutil.Process(pid)
            if process.environ().get(ATTEMPT_VARIABLE) == mark:
                process.kill()


def remove_sockets(folder: str | None) -> None:
    """Remove the folder of a dead kernel's sockets, if it is one of ours."""
    if folder is None:
        return
    path = Path(folder)
    if path.name.startswith(SOCKET_DIR_PREFIX) and path.parent in _socket_parents():
        shutil.rmtree(path, ignore_errors=True)


def make_sockets_folder() -> Path:
    """Return a new folder (0700) for a kernel's sockets, with a path short enough for them."""
    return Path(tempfile.mkdtemp(prefix=SOCKET_DIR_PREFIX, dir=_socket_parents()[0]))


def _socket_parents() -> list[Path]:
    """List where such folders are made, the preferred one first."""
    default, short = Path(tempfile.gettempdir()), Path("/tmp")  # noqa: S108
    # The path of a socket has about 100 bytes at most.
    return [default, short] if len(str(default)) < 60 else [short, default]
