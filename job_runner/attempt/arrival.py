"""Waits for a job's directory, which another process fetches while the runner starts.

On a cluster the agent renames the directory into place when it is complete, so that it is there is
all that has to be known. Meanwhile the runner imports what it will need. It does not start the
kernel: the kernel's name, its variables and its working directory come with the files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .. import signals
from ..diagnosis.endings import End, RunFailed
from ..diagnosis.exit_codes import Exit
from ..protocol import layout, times
from ..protocol.outcome import Outcome
from ..protocol.units import format_duration
from .finalize import write_termination_message

LOOK_INTERVAL = 0.02
"""Seconds between two looks: a GPU may be waiting."""


def wait_for_job(job_dir: Path, seconds: float) -> None:
    """Return once the job's directory is there. Raises RunFailed after `seconds` (0: never).

    Raises it at once for a directory that is another user's. A request to stop ends the process at
    once: nothing has begun that would have to be saved.
    """
    deadline = time.monotonic() + seconds
    imports = _imports()
    with signals.exiting_at_once(Exit.TERMINATED):
        while not _has_arrived(job_dir):
            if seconds and time.monotonic() >= deadline:
                raise _failure(
                    f"The job's files did not arrive within {format_duration(seconds)}. "
                    "The log of the pod's agent says why."
                )
            if (do_import := next(imports, None)) is not None:
                do_import()
            else:
                time.sleep(LOOK_INTERVAL)


def _has_arrived(job_dir: Path) -> bool:
    """Tell whether the directory is there. Raises RunFailed if the agent's user alone may enter it.

    A pod that names no user leaves it to each image, and agent and notebook have two images.
    """
    try:
        (job_dir / layout.REQUEST).stat()
    except FileNotFoundError:
        return False
    except PermissionError:
        raise _failure(
            f"The job's files belong to user {job_dir.stat().st_uid}, who is the agent's, and the "
            f"notebook's container runs as user {os.geteuid()}, who may not read them. "
            "The administrator sets runAsUser of dev pods (KubeSpawner: `uid`)."
        ) from None
    return True


def _imports() -> Iterator[Callable[[], None]]:
    """Yield functions that import what a run needs after its kernel was started."""
    from ..notebook.lazy_imports import import_papermill

    yield import_papermill
    yield _import_execution


def _import_execution() -> None:
    from . import execution  # noqa: F401


def _failure(message: str) -> RunFailed:
    """Return the error, and tell Kubernetes the reason: there is no attempt to write it to."""
    outcome = Outcome(
        state="failed",
        reason="BackendError",
        message=message,
        exit_code=Exit.IO,
        cells={"done": 0, "total": 0},
        started=None,
        finished=times.now(),
        usage={},
        result_sha256=None,
    )
    write_termination_message(outcome)
    return RunFailed(End(outcome.reason, message, Exit.IO))
