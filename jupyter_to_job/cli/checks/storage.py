"""Checks exchange and workspace: private, writable, on file systems with the needed features."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from job_runner.protocol.documents import sync_directory
from job_runner.protocol.units import format_bytes

from .. import session
from ..display import formats
from .result import CheckResult, ok, problem, warning

LOW_SPACE, TOO_LOW_SPACE = 1 << 30, 100 << 20
"""Bytes of free space below which there is a warning, and below which jobs soon fail."""
MOVE_EXCHANGE = "Set JUPYTER_TO_JOB_EXCHANGE to a directory of your own."


def check_exchange() -> Iterator[CheckResult]:
    """Check the directory of the jobs, which is created if it does not exist."""
    from ...exchange import FileExchange

    exchange = FileExchange(session.settings().exchange_root())
    try:
        exchange.prepare()
    except FileExistsError as error:
        yield problem(f"{error.filename} is no folder.", MOVE_EXCHANGE)
        return
    except OSError as error:
        yield problem(f"Cannot make {exchange.root}: {error.strerror}.", MOVE_EXCHANGE)
        return
    status = exchange.root.stat()
    if status.st_uid != os.getuid():
        yield problem(
            f"{exchange.root} belongs to user {status.st_uid}, not to you ({os.getuid()}).",
            MOVE_EXCHANGE,
        )
    elif stat.S_IMODE(status.st_mode) & 0o077:
        yield warning(f"Others may look into {exchange.root}.", f"chmod 700 {exchange.root}")
    else:
        yield ok(f"{exchange.root}: {formats.plural(len(exchange.jobs()), 'job')}, private")
    yield from _check_file_system(exchange.root, needs_links=True)


def check_workspace() -> Iterator[CheckResult]:
    """Check the folder that results are delivered to."""
    root = session.workspace()
    yield ok(str(root))
    yield from _check_file_system(root, needs_links=False)


def _check_file_system(folder: Path, *, needs_links: bool) -> Iterator[CheckResult]:
    from ...exchange.filesystem import is_network

    faults: dict[str, str] = {}
    try:
        with tempfile.TemporaryDirectory(
            prefix=".jupyter-to-job-", dir=folder, ignore_cleanup_errors=True
        ) as name:
            trial = Path(name)
            (trial / "file").write_bytes(b"trial")
            for feature, test in _TRIALS.items():
                try:
                    test(trial)
                except OSError as error:
                    faults[feature] = error.strerror or str(error)
    except OSError as error:
        yield problem(f"Cannot write in {folder}: {error.strerror}.", _fix_for(folder, error))
        return
    if faults.keys() == {"link"} and not needs_links:
        yield warning(
            f"The file system of {folder} has no links: results appear there less safely.",
            "Nothing to do; a local disk would be better.",
        )
    elif faults:
        lacks = ", ".join(f"{feature} ({reason})" for feature, reason in faults.items())
        yield problem(
            f"The file system of {folder} lacks: {lacks}.", "Use a folder on a local disk."
        )
    else:
        kind = "a network file system" if is_network(folder) else "a local file system"
        yield ok(f"link, rename, chmod, fsync and locks work; {kind}")
    yield _check_space(folder)


def _fix_for(folder: Path, error: OSError) -> str:
    """Return how to fix a folder that cannot be written to."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "Free some space."
    if error.errno == errno.ENOENT:
        return f"mkdir -p {folder}"
    if error.errno == errno.EACCES and folder.stat().st_uid == os.getuid():
        return f"chmod u+rwx {folder}"
    return "Use a folder that you can write in, or ask whoever looks after this one."


def _try_link(trial: Path) -> None:
    (trial / "link").hardlink_to(trial / "file")


def _try_rename(trial: Path) -> None:
    (trial / "a").mkdir()
    (trial / "a").rename(trial / "b")


def _try_chmod(trial: Path) -> None:
    (trial / "file").chmod(0o600)
    if stat.S_IMODE((trial / "file").stat().st_mode) != 0o600:
        raise OSError("modes do not stay")


def _try_fsync(trial: Path) -> None:
    with (trial / "file").open("rb") as file:
        os.fsync(file)
    sync_directory(trial)


def _try_lock(trial: Path) -> None:
    with (trial / "file").open("rb") as holder, (trial / "file").open("rb") as rival:
        fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            fcntl.flock(rival, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
    raise OSError("two can hold one lock")


_TRIALS: dict[str, Callable[[Path], None]] = {
    "link": _try_link,
    "rename": _try_rename,
    "chmod": _try_chmod,
    "fsync": _try_fsync,
    "locks": _try_lock,
}


def _check_space(folder: Path) -> CheckResult:
    free = shutil.disk_usage(folder).free
    message = f"{format_bytes(free)} are free at {folder}"
    if free < TOO_LOW_SPACE:
        return problem(f"Only {message}.", "Free some space: jobs fail with DiskFull.")
    if free < LOW_SPACE:
        return warning(f"Only {message}.", "Free some space before large results come.")
    return ok(message)
