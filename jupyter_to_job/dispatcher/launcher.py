"""How a runner begins: as a copy of the dispatcher where it would be the same, else as a program.

A copy has its interpreter started and papermill imported, which is most of what a short run costs
beside its kernel. It is the same where the submitter's interpreter is ours, nothing else is asked
for of what an interpreter reads as it starts, and nothing was installed since.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from job_runner import preload

from .forks import Fork

_AT_START = ("HOME", "LANG", "LC_", "LD_", "PYTHON")
"""How the names of variables begin that an interpreter and its loader read when they start."""
_MISSED = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PYTHONPATH")
"""Those of them that a submitter who has them passes on: that a run lacks one says something."""
_THREADS = Path("/proc/self/task")
_log = logging.getLogger(__name__)


class Launcher:
    """Begins runners, as sessions of their own."""

    def __init__(self) -> None:
        self._can_copy = False
        self._has_tried = False
        self._installed = preload.site_packages_mtime()

    def prepare(self) -> None:
        """Import what runs need, so that the next ones can be copies; once, when nobody waits."""
        # Elsewhere than on Linux a copy may crash in the system's own libraries.
        if self._has_tried or not _THREADS.exists():
            return
        self._has_tried = True
        try:
            preload.preload()
        except Exception as error:  # whatever is wrong, each run tells it by itself
            _log.warning("no run can be a copy: %s: %s", type(error).__name__, error)
            return
        # A library that began a thread would have it, and what it holds locked, missing in a copy.
        threads = len(list(_THREADS.iterdir()))
        self._can_copy = threads == 1
        if not self._can_copy:
            _log.warning(
                "no run can be a copy: with papermill imported there are %d threads", threads
            )

    def start(
        self, interpreter: str, arguments: list[str], environ: Mapping[str, str], log: int
    ) -> subprocess.Popen[bytes] | Fork:
        """Start `interpreter -m job_runner arguments` with these variables. Raises OSError."""
        command = [interpreter, "-m", "job_runner", *arguments]
        is_ours = interpreter == sys.executable and _is_like_ours(environ)
        if self._is_ready() and is_ours and preload.fits_command_line(command):
            return Fork(
                partial(preload.run_forked, command, dict(environ)),
                log,
                preload.install_signal_handlers,
            )
        return subprocess.Popen(
            command,
            env=environ,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def _is_ready(self) -> bool:
        """Tell whether a copy has what a program would import: nothing was installed since."""
        return self._can_copy and preload.site_packages_mtime() == self._installed


def _is_like_ours(environ: Mapping[str, str]) -> bool:
    """Tell whether we were started with what these variables say, where only a start reads it."""
    asked = {name for name in environ if name.startswith(_AT_START)}
    return all(environ.get(name) == os.environ.get(name) for name in asked.union(_MISSED))
