"""This machine: what jobs may use, the GPUs' driver, and the dispatcher."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from job_runner.protocol.units import format_bytes

from ...domain.quantities import format_resource
from .. import session
from .result import CheckResult, ok, problem, warning

_TAIL = 64 << 10


def check_gpus() -> Iterator[CheckResult]:
    """Look for GPUs; none is fine."""
    from job_runner.host.gpu_devices import is_driver_installed

    from ...backends.local.gpus import DRIVER_TIMEOUT, Probe

    area = "GPUs"
    if not is_driver_installed():
        yield ok(area, "No NVIDIA driver here: jobs get CPUs only")
        return
    probe = Probe()
    found = probe.devices(DRIVER_TIMEOUT) or probe.devices()
    if found is None or probe.problem:
        yield problem(
            area,
            f"There is a driver, but {probe.problem or 'no answer from it'}.",
            "Does `nvidia-smi` work? If not, mend the driver; else reinstall nvidia-ml-py.",
        )
    elif not found:
        yield warning(area, "There is a driver, and no GPU that we may use.", "nvidia-smi -L")
    else:
        kinds = ", ".join(f"{len(ids)} {name}" for name, ids in found.items())
        yield ok(area, kinds)


def check_slots() -> Iterator[CheckResult]:
    """Say what jobs may use at a time."""
    from ...backends.local.capacity import capacity

    setting = session.settings().capacity
    amounts = ", ".join(format_resource(name, amount) for name, amount in capacity(setting).items())
    where = "as JUPYTER_TO_JOB_CAPACITY says" if setting else "this machine's"
    yield ok("slots", f"{amounts}: {where}")


def check_dispatcher() -> Iterator[CheckResult]:
    """Look whether a dispatcher runs, whose it is, and what it complained of last."""
    from ...backends.local import hosts

    area, root = "dispatcher", session.settings().exchange_root()
    host = hosts.this_host()
    if hosts.has_dispatcher(root, host):
        yield _running(area, root)
    else:
        yield ok(area, "Not running; the next job starts it")
    log = hosts.host_folder(root, host) / hosts.LOG
    last = _last_error(log)
    if last:
        yield warning(area, f"Its last error: {last}", f"The whole log: {log}")


def _running(area: str, root: Path) -> CheckResult:
    import psutil

    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            line = process.cmdline()
            if "jupyter_to_job.dispatcher" in line and str(root) in line:
                memory = format_bytes(process.memory_info().rss)
                said = f"Running: process {process.pid}, {memory}"
                if line[0] == sys.executable:
                    return ok(area, said)
                return warning(
                    area,
                    f"{said}, but of another Python: {line[0]}.",
                    "Fine if that has this version, too; it leaves when there is nothing to do.",
                )
    return warning(
        area, "Its lock is held, and no process of yours holds it.", "Does another user share it?"
    )


def _last_error(log: Path) -> str:
    """Return the last line of the log that tells of an error, "" if none does."""
    try:
        with log.open("rb") as file:
            file.seek(max(log.stat().st_size - _TAIL, 0))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line for line in reversed(lines) if " ERROR " in line or "Error: " in line), "")
