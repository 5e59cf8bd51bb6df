"""Checks this machine: the resources for jobs, the GPUs and their driver, the dispatcher."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from job_runner.protocol.units import format_bytes

from ...domain.quantities import format_resource
from .. import session
from .result import CheckResult, ok, problem, warning

_LOG_TAIL = 64 << 10
"""Bytes at the end of the dispatcher's log that are searched for an error."""


def check_gpus() -> Iterator[CheckResult]:
    """Check for GPUs. A machine without any is in order."""
    from job_runner.host.gpu_devices import is_driver_installed

    from ...backends.local.gpus import DRIVER_TIMEOUT, Probe

    if not is_driver_installed():
        yield ok("No NVIDIA driver here: jobs get CPUs only")
        return
    probe = Probe()
    gpus = probe.devices(DRIVER_TIMEOUT) or probe.devices()
    if gpus is None or probe.problem:
        yield problem(
            f"There is a driver, but {probe.problem or 'no answer from it'}.",
            "Does `nvidia-smi` work? If not, fix the driver; else reinstall nvidia-ml-py.",
        )
    elif not gpus:
        yield warning("There is a driver, and no GPU that we may use.", "nvidia-smi -L")
    else:
        kinds = ", ".join(f"{len(ids)} {name}" for name, ids in gpus.items())
        yield ok(kinds)


def check_slots() -> Iterator[CheckResult]:
    """Report the resources that all jobs may use together."""
    from ...backends.local.capacity import capacity

    setting = session.settings().capacity
    amounts = ", ".join(format_resource(name, amount) for name, amount in capacity(setting).items())
    origin = "as JUPYTER_TO_JOB_CAPACITY says" if setting else "this machine's"
    yield ok(f"{amounts}: {origin}")


def check_dispatcher() -> Iterator[CheckResult]:
    """Check whether a dispatcher runs, of which Python it is, and the last error in its log."""
    from ...backends.local import hosts

    root = session.settings().exchange_root()
    host = hosts.this_host()
    if hosts.has_dispatcher(root, host):
        yield _running(root)
    else:
        yield ok("Not running; the next job starts it")
    log = hosts.host_folder(root, host) / hosts.LOG
    if error := _last_error(log):
        yield warning(f"Its last error: {error}", f"The whole log: {log}")


def _running(root: Path) -> CheckResult:
    import psutil

    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            line = process.cmdline()
            if "jupyter_to_job.dispatcher" in line and str(root) in line:
                memory = format_bytes(process.memory_info().rss)
                message = f"Running: process {process.pid}, {memory}"
                if line[0] == sys.executable:
                    return ok(message)
                return warning(
                    f"{message}, but of another Python: {line[0]}.",
                    "Fine if that has this version, too; it leaves when there is nothing to do.",
                )
    return warning(
        "Its lock is held, and no process of yours holds it.", "Does another user share it?"
    )


def _last_error(log: Path) -> str:
    """Return the last line of the log that reports an error, "" if there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(log.stat().st_size - _LOG_TAIL, 0))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line for line in reversed(lines) if " ERROR " in line or "Error: " in line), "")
