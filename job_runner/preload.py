"""Runs as forks of a process that has everything imported: none of them starts an interpreter.

Starting Python and importing papermill takes a short run three times as long as all its other work
outside the kernel. The local dispatcher, which starts one run after the other, imports once and
forks.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import proctitle, signals

fits_command_line = proctitle.fits_command_line
"""Tell whether a copy can show a command line as its own: else it must not be one."""
install_signal_handlers = signals.install
"""Take over the signals that tell a run to stop: first of all, while they are still blocked."""


def preload() -> None:
    """Import all that a run needs. For a process of one thread: only that can be copied safely."""
    from .notebook.lazy_imports import import_papermill

    import_papermill()
    from jupyter_client.provisioning.factory import KernelProvisionerFactory
    from nbformat.validator import get_validator

    from . import cli  # noqa: F401
    from .attempt import execution, finish, run, standalone  # noqa: F401

    # What Jupyter writes: from its schema a validator is compiled, 20 ms that each run would take.
    for minor in (4, 5):
        get_validator(4, minor)
    # It looks for kernel provisioners in all that is installed: 14 ms.
    KernelProvisionerFactory.instance()
    gc.freeze()  # so that no collection in a copy writes to all of the memory that it shares


def site_packages_mtime() -> int:
    """Tell when something was last installed beside papermill: it may be another one since then."""
    spec = importlib.util.find_spec("papermill")
    with contextlib.suppress(OSError):
        if spec is not None and spec.origin is not None:
            return Path(spec.origin).parents[1].stat().st_mtime_ns
    return 0


def run_forked(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Do what `python -m job_runner` does as `command`, a whole command line; return the exit code.

    This process, a copy that was made for it, gets exactly the variables `environ` and shows the
    command line.
    """
    from .cli import main

    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    proctitle.set_command_line(command)
    return main(list(command[3:]))
