"""Starts runners: as forks of the dispatcher where that makes no difference, else as programs.

A fork has a running interpreter and papermill imported, which is most of the cost of a short run
beside its kernel. It makes no difference where the submitter's interpreter is the dispatcher's, the
variables that an interpreter reads at start-up are equal, and nothing was installed since.
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

_STARTUP_PREFIXES = ("HOME", "LANG", "LC_", "LD_", "PYTHON")
"""Prefixes of variables that Python or the loader reads at start-up."""
_FORWARDED = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PYTHONPATH")
"""Those of them that submissions forward: if one is absent, the submitter did not have it."""
_THREADS = Path("/proc/self/task")
_log = logging.getLogger(__name__)


class Launcher:
    """Starts runners, as sessions of their own."""

    def __init__(self) -> None:
        self._can_fork = False
        self._has_tried = False
        self._site_packages_mtime = preload.site_packages_mtime()

    def prepare(self) -> None:
        """Import what runs need, so that the next ones can be forks; once, when no user waits."""
        # On other systems than Linux a fork may crash in the system's own libraries.
        if self._has_tried or not _THREADS.exists():
            return
        self._has_tried = True
        try:
            preload.preload()
        except Exception as error:  # each run reports the same error by itself
            _log.warning("no run can be a fork: %s: %s", type(error).__name__, error)
            return
        # A fork lacks the threads that a library started, and what they hold stays locked in it.
        threads = len(list(_THREADS.iterdir()))
        self._can_fork = threads == 1
        if not self._can_fork:
            _log.warning(
                "no run can be a fork: with papermill imported there are %d threads", threads
            )

    def start(
        self, interpreter: str, arguments: list[str], environ: Mapping[str, str], log: int
    ) -> subprocess.Popen[bytes] | Fork:
        """Start `interpreter -m job_runner arguments` with these variables. Raises OSError."""
        command = [interpreter, "-m", "job_runner", *arguments]
        is_ours = interpreter == sys.executable and _has_our_environment(environ)
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
        """Tell whether a fork has what a program would import: nothing was installed since."""
        return self._can_fork and preload.site_packages_mtime() == self._site_packages_mtime


def _has_our_environment(environ: Mapping[str, str]) -> bool:
    """Tell whether the start-up variables are those that the dispatcher was started with."""
    names = {name for name in environ if name.startswith(_STARTUP_PREFIXES)}
    return all(environ.get(name) == os.environ.get(name) for name in names.union(_FORWARDED))
