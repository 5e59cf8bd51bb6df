"""Removes what a dead runner may leave behind: processes that a notebook started, and sockets.

A kernel dies with its runner. A background process of the notebook does not, and may hold a GPU. It
is recognised by its session, which the kernel led. Another process may have the session's number by
now, so one process of the session must prove whose it is, by the mark in its environment: a process
that sets its title overwrites its own. A process with its own session is left alone.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

ATTEMPT_VARIABLE = "JUPYTER_TO_JOB_ATTEMPT"
"""The variable in a kernel's environment that names the attempt's directory."""
TERMINATION_LOG = "JUPYTER_TO_JOB_TERMINATION_LOG"
"""The variable in the runner's that names a file for a summary; the notebook does not get it."""
SOCKET_DIR_PREFIX = "job-runner-"
"""How the names of the folders with kernels' sockets begin."""


def end_session(session: int, mark: str, *, is_held: bool = False) -> None:
    """Kill every process of a kernel's session, if it is still the kernel's.

    Linux gives nobody the number of a session that has a process. So all of them are the kernel's
    if one of them carries `mark`. With `is_held` the kernel holds the number now.
    """
    import psutil  # not before the kernel was started

    members = []
    for pid in psutil.pids():
        with contextlib.suppress(psutil.Error, OSError):
            if os.getsid(pid) == session and pid != os.getpid():
                process = psutil.Process(pid)
                if os.getsid(pid) == session:  # still
                    members.append(process)
    if is_held or any(_has_mark(process, mark) for process in members):
        for process in members:
            with contextlib.suppress(psutil.Error, OSError):
                process.kill()


def _has_mark(process: psutil.Process, mark: str) -> bool:
    import psutil

    with contextlib.suppress(psutil.Error, OSError):
        return bool(process.environ().get(ATTEMPT_VARIABLE) == mark)
    return False


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
