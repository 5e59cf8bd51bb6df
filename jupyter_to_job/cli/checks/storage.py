"""Exchange and workspace: private, writable, and on file systems that do what is relied on."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from job_runner.protocol.units import format_bytes

from .. import session
from ..display import formats
from .result import CheckResult, ok, problem, warning

LITTLE, TOO_LITTLE = 1 << 30, 100 << 20
"""Bytes of free space below which there is a warning, and below which jobs soon fail."""
ELSEWHERE = "Set JUPYTER_TO_JOB_EXCHANGE to a directory of your own."


def check_exchange() -> Iterator[CheckResult]:
    """Look at the directory that holds the jobs; it is made if it is not there."""
    from ...exchange import FileExchange

    area, exchange = "exchange", FileExchange(session.settings().exchange_root())
    try:
        exchange.prepare()
    except FileExistsError as error:
        yield problem(area, f"{error.filename} is no folder.", ELSEWHERE)
        return
    except OSError as error:
        yield problem(area, f"Cannot make {exchange.root}: {error.strerror}.", ELSEWHERE)
        return
    status = exchange.root.stat()
    if status.st_uid != os.getuid():
        yield problem(
            area,
            f"{exchange.root} belongs to user {status.st_uid}, not to you ({os.getuid()}).",
            ELSEWHERE,
        )
    elif stat.S_IMODE(status.st_mode) & 0o077:
        yield warning(area, f"Others may look into {exchange.root}.", f"chmod 700 {exchange.root}")
    else:
        yield ok(area, f"{exchange.root}: {formats.plural(len(exchange.jobs()), 'job')}, private")
    yield from _file_system(area, exchange.root, needs_links=True)


def check_workspace() -> Iterator[CheckResult]:
    """Look at the folder that results are delivered into."""
    root = session.workspace()
    yield ok("workspace", str(root))
    yield from _file_system("workspace", root, needs_links=False)


def _file_system(area: str, folder: Path, *, needs_links: bool) -> Iterator[CheckResult]:
    from ...exchange.filesystem import is_network

    trial = folder / f".jupyter-to-job-{secrets.token_hex(8)}"
    try:
        trial.mkdir(mode=0o700)
    except OSError as error:
        yield problem(area, f"Cannot write in {folder}: {error.strerror}.", _mend(folder, error))
        return
    try:
        (trial / "file").write_bytes(b"trial")
        faults = [f"{name} ({why})" for name, act in _TRIALS.items() if (why := _fails(act, trial))]
        links = _fails(lambda path: os.link(path / "file", path / "link"), trial)
    except OSError as error:
        yield problem(area, f"Cannot write in {folder}: {error.strerror}.", _mend(folder, error))
        return
    finally:
        shutil.rmtree(trial, ignore_errors=True)
    if links and needs_links:
        faults.insert(0, f"link ({links})")
    if faults:
        yield problem(
            area,
            f"The file system of {folder} lacks: {', '.join(faults)}.",
            "Use a folder on a local disk.",
        )
    elif links:
        yield warning(
            area,
            f"The file system of {folder} has no links: results appear there less safely.",
            "Nothing to do; a local disk would be better.",
        )
    else:
        kind = "a network file system" if is_network(folder) else "a local file system"
        yield ok(area, f"link, rename, chmod, fsync and locks work; {kind}")
    yield _space(area, folder)


def _mend(folder: Path, error: OSError) -> str:
    """Return what to do about a folder that cannot be written in."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "Free some space."
    if error.errno == errno.ENOENT:
        return f"mkdir -p {folder}"
    if error.errno == errno.EACCES and folder.stat().st_uid == os.getuid():
        return f"chmod u+rwx {folder}"
    return "Use a folder that you can write in, or ask whoever looks after this one."


def _fails(act: Callable[[Path], None], trial: Path) -> str:
    """Return why a trial failed, or "" """
    try:
        act(trial)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _rename(trial: Path) -> None:
    (trial / "a").mkdir()
    (trial / "a").rename(trial / "b")


def _chmod(trial: Path) -> None:
    (trial / "file").chmod(0o600)
    if stat.S_IMODE((trial / "file").stat().st_mode) != 0o600:
        raise OSError("modes do not stay")


def _fsync(trial: Path) -> None:
    for path in (trial / "file", trial):
        with _opened(path) as descriptor:
            os.fsync(descriptor)


def _lock(trial: Path) -> None:
    with _opened(trial / "file") as first, _opened(trial / "file") as second:
        fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
    raise OSError("two can hold one lock")


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


_TRIALS: dict[str, Callable[[Path], None]] = {
    "rename": _rename,
    "chmod": _chmod,
    "fsync": _fsync,
    "locks": _lock,
}


def _space(area: str, folder: Path) -> CheckResult:
    free = shutil.disk_usage(folder).free
    message = f"{format_bytes(free)} are free at {folder}"
    if free < TOO_LITTLE:
        return problem(area, f"Only {message}.", "Free some space: jobs fail with DiskFull.")
    if free < LITTLE:
        return warning(area, f"Only {message}.", "Free some space before large results come.")
    return ok(area, message)
