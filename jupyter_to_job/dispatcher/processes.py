"""The dispatcher's processes: runners, `job_runner finish` for runs that died, and tasks.

All are sessions of their own and outlive the dispatcher. A new dispatcher can do without all that
is kept here about them.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from job_runner.protocol import documents, layout, liveness
from job_runner.protocol.units import format_duration

from ..backends.local.hosts import host_folder, last_line
from ..exchange import FileExchange, Request
from ..exchange.ballast import release_for_end
from ..workspace.publishing import sign
from . import tasks
from .forks import Fork
from .launcher import Launcher

KILL_AFTER = 10.0
"""Seconds between SIGTERM and SIGKILL for a cancelled run."""
MAX_STARTS = 3
"""Starts of a job's runner: while pip replaces the package, each of them fails."""
MAX_HELPERS = 4
"""Results that are finished, and jobs that are removed, at a time: each may be large."""
MAX_DELIVERIES = 8
"""Results that are delivered at a time, without those that are slow: their folders may hang."""
MAX_OF_FOLDER = 4
"""Results that are delivered to one folder at a time: it may hang, as one on NFS does."""
SLOW_SECONDS = 60.0
"""Seconds after which a helper is logged as slow."""
TAKEN_INTERVAL = 2.0
"""Seconds before an attempt is looked at again on which another process is at work."""
_ATTEMPT_TAKEN = 75
"""The exit status of a process that found another one at work on the attempt."""
_CANNOT_WRITE = 74
"""The exit status of a runner or a finish that could not write to its attempt."""
_NO_PROGRAM = (
    errno.ENOENT,
    errno.EACCES,
    errno.ENOTDIR,
    errno.ENOEXEC,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.E2BIG,
)
"""Errors of starting an interpreter that is missing or broken. Others are tried again."""
_log = logging.getLogger(__name__)


@dataclass
class _Child:
    """A process. A helper that delivers has the folder to which it does."""

    kind: str
    process: subprocess.Popen[bytes] | Fork
    log: Path
    folder: str | None = None
    slow_at: float = field(default_factory=lambda: time.monotonic() + SLOW_SECONDS)

    @property
    def is_slow(self) -> bool:
        """Whether it was logged as slow."""
        return self.slow_at == math.inf

    def last_log_line(self, status: int) -> str:
        """Return the last line that an ended process logged, else its exit status."""
        return last_line(self.log) or f"exit status {status}"


class Processes:
    """Starts and ends processes for the jobs of one exchange."""

    def __init__(self, exchange: FileExchange, host: str) -> None:
        self._exchange = exchange
        self._folder = host_folder(exchange.root, host)
        self._runners: dict[str, _Child] = {}
        self._helpers: dict[str, _Child] = {}
        self._retaining: Fork | None = None
        self._holding: Fork | None = None
        self._launcher = Launcher()
        self._terminated_at: dict[str, float] = {}
        self._overdue_since: dict[str, float] = {}
        self._failures: dict[str, tuple[str, str]] = {}
        """By job: reason and message."""
        self._failed_starts: dict[str, int] = {}
        self._retry_delay: dict[str, float] = {}
        self._retry_at: dict[str, float] = {}
        self._failed_statuses: dict[str, int] = {}
        """By job: the exit status of the last helper that failed."""

    # Starting -------------------------------------------------------------------------------

    def start_runner(self, request: Request, variables: Mapping[str, str]) -> None:
        """Start the first attempt of a job in the submitter's interpreter and environment.

        The catalog's `env` overrides that environment, and `variables` override both. Raises
        OSError where another try may succeed.
        """
        arguments = ["run", self._directory(request.name), "--attempt", "1"]
        environment = request.environment
        specs = (request.flavor_spec, request.device_spec)
        catalog = {name: value for spec in specs for name, value in spec.get("env", {}).items()}
        environ = {**environment.variables, **catalog, **variables}
        try:
            with self._log(request.name, "run") as (path, log):
                runner = self._launcher.start(environment.interpreter, arguments, environ, log)
        except OSError as error:
            if error.errno not in _NO_PROGRAM:
                raise
            message = f"{environment.interpreter} cannot be started: {error.strerror}."
            self._failures[request.name] = ("RunnerMissing", message)
            _log.warning("%s: %s", request.name, message)
            return
        self._runners[request.name] = _Child("run", runner, path)
        _log.info("%s: runner %d", request.name, runner.pid)

    def finish(self, job: str, reason: str, message: str) -> None:
        """Start a process that writes result and outcome of a dead attempt."""
        arguments = ["finish", self._directory(job), "--reason", reason, "--message", message]
        if self._may_help(job):
            if self._failed_statuses.get(job) == _CANNOT_WRITE:
                release_for_end(self._exchange.root, job)
            with self._log(job, "finish") as (path, log):
                # The dispatcher's interpreter, because the submitter's may be gone.
                finishing = self._launcher.start(sys.executable, arguments, os.environ, log)
            self._helpers[job] = _Child("finish", finishing, path)

    def deliver_or_remove(self, request: Request) -> bool:
        """Start to deliver an ended job, or to remove it if requested; tell whether it began.

        Raises NotFound.
        """
        job, folder = request.name, None
        if not self._exchange.has(job, layout.DELETE):
            target = f"{request.workspace}/{request.output or request.notebook}"
            folder = os.path.dirname(target)  # noqa: PTH120 - `Path` drops the last slash
        may_help = self._may_help(job, folder)
        if may_help:
            sign.preload()  # once, for all forks
            work = partial(tasks.deliver_or_remove, self._exchange, job)
            with self._log(job, "settle") as (path, log):
                self._helpers[job] = _Child("settle", Fork(work, log), path, folder)
            self._launcher.prepare()  # this job's user has the result, and runs may follow
        return may_help

    def retain(self) -> None:
        """Start the retention, unless it runs. Its output goes to the dispatcher's log."""
        if self._retaining is None or self._retaining.poll() is not None:
            work = partial(tasks.retain, self._exchange)
            self._retaining = Fork(work, sys.stderr.fileno())

    def hold_ballast(self) -> None:
        """Start a process that makes the exchange's ballast, for the disk may be slow.

        Where there can be none the next delivery makes it.
        """
        with contextlib.suppress(OSError):
            self._holding = Fork(partial(tasks.hold, self._exchange), sys.stderr.fileno())

    # Ending ---------------------------------------------------------------------------------

    def terminate(self, job: str, attempt: Path | None) -> None:
        """End a run on this host: SIGTERM, and after `KILL_AFTER` SIGKILL to its session."""
        pid = self._runner_pid(job, attempt)
        if pid is None:
            return  # dead, and being finished
        # A runner that ended meanwhile is no error: the next observation has its outcome.
        with contextlib.suppress(ProcessLookupError):
            if job not in self._terminated_at:
                self._terminated_at[job] = time.monotonic()
                os.kill(pid, signal.SIGTERM)
                os.kill(pid, signal.SIGCONT)  # a stopped one would not notice
            elif time.monotonic() - self._terminated_at[job] > KILL_AFTER:
                _kill_session(pid)

    def end_overdue(self, job: str, attempt: Path | None, limit: int) -> None:
        """Wake a run on this host that went past its time limit, and after `KILL_AFTER` kill it.

        One that was only stopped then ends by itself.
        """
        pid = self._runner_pid(job, attempt)
        if pid is None or job in self._terminated_at:
            return
        with contextlib.suppress(ProcessLookupError):
            if job not in self._overdue_since:
                self._overdue_since[job] = time.monotonic()
                _log.warning("%s: past its limit of %d s", job, limit)
                os.kill(pid, signal.SIGCONT)
            elif time.monotonic() - self._overdue_since[job] > KILL_AFTER:
                message = f"It went on past its limit of {format_duration(limit)}, and was killed."
                self._failures[job] = ("DeadlineExceeded", message)
                _kill_session(pid)

    def reap(self) -> set[str]:
        """Reap the processes that ended; return their jobs."""
        ended = set()
        if self._holding is not None:
            self._holding.poll()
        for children in (self._runners, self._helpers):
            for job, child in list(children.items()):
                status = child.process.poll()
                if status is None:
                    continue
                ended.add(job)
                del children[job]
                if children is self._runners:
                    self._on_runner_end(job, child, status)
                elif status == _ATTEMPT_TAKEN:  # no failure: the run keeps its slot
                    self._retry_at[job] = time.monotonic() + TAKEN_INTERVAL
                elif status != 0:
                    self._postpone(job, child, status)
                child.log.unlink(missing_ok=True)
        return ended

    def log_slow_helpers(self) -> None:
        """Log each helper once that takes long."""
        for job, child in self._helpers.items():
            if time.monotonic() > child.slow_at:
                child.slow_at = math.inf
                place = f" to {child.folder}, which may hang" if child.folder else ""
                _log.warning("%s: %s takes over %g s%s", job, child.kind, SLOW_SECONDS, place)

    def forget(self, job: str) -> None:
        """Drop the state of a settled job, and the logs of its processes."""
        for state in (
            self._terminated_at,
            self._overdue_since,
            self._failures,
            self._failed_starts,
            self._retry_delay,
            self._retry_at,
            self._failed_statuses,
        ):
            state.pop(job, None)
        for kind in ("run", "finish", "settle"):
            self._log_path(job, kind).unlink(missing_ok=True)

    def remove_leftovers(self, jobs: Container[str]) -> None:
        """Remove files of killed dispatchers that belong to none of `jobs`."""
        documents.remove_drafts(self._folder)
        for log in self._folder.glob("*.*.log"):
            if log.name.partition(".")[0] not in jobs:
                log.unlink(missing_ok=True)

    # State ----------------------------------------------------------------------------------

    def has_runner(self, job: str) -> bool:
        """Tell whether a runner that this dispatcher started for a job still runs."""
        return job in self._runners

    def has_helper(self, job: str) -> bool:
        """Tell whether a process finishes, delivers or removes the job."""
        return job in self._helpers

    def has_failed(self, job: str) -> bool:
        """Tell whether the last helper of a job failed: it is tried again."""
        return job in self._retry_delay

    def failure(self, job: str) -> tuple[str, str] | None:
        """Return reason and message if a job's runner cannot start, or failed by itself."""
        return self._failures.get(job)

    # Inside ---------------------------------------------------------------------------------

    def _on_runner_end(self, job: str, child: _Child, status: int) -> None:
        if status == _ATTEMPT_TAKEN:
            return  # an earlier dispatcher's runner has the attempt
        has_attempt = bool(layout.attempts(self._exchange.root / job))
        if status < 0 and not has_attempt:
            message = f"The runner was killed (signal {-status}) before it began."
            self._failures[job] = ("Lost", message)
        elif status > 0 and (has_attempt or status == _CANNOT_WRITE):
            # It counts only if there is no outcome.
            message = f"The runner failed: {child.last_log_line(status)}"
            self._failures[job] = ("BackendError", message)
        elif not has_attempt:
            message = f"The runner did not start: {child.last_log_line(status)}"
            self._failed_starts[job] = self._failed_starts.get(job, 0) + 1
            if self._failed_starts[job] >= MAX_STARTS:
                self._failures[job] = ("RunnerMissing", message)
        if not has_attempt:
            _log.warning("%s: %s", job, message)

    def _runner_pid(self, job: str, attempt: Path | None) -> int | None:
        child = self._runners.get(job)
        if child is not None:
            return child.process.pid
        runner = None
        if attempt is not None:
            with contextlib.suppress(documents.DocumentError):
                runner = documents.read_document(attempt / layout.RUNNER)
        return int(runner["pid"]) if runner and liveness.is_same_process(runner) else None

    def _may_help(self, job: str, folder: str | None = None) -> bool:
        """Tell whether a helper may be started: one per job, not too many, not too early.

        `folder` is where it delivers. Deliveries that hang keep no other helper from its place.
        """
        if job in self._helpers or time.monotonic() < self._retry_at.get(job, 0.0):
            return False
        helpers = self._helpers.values()
        of_folder = sum(child.folder == folder for child in helpers)
        if folder is None:
            return of_folder < MAX_HELPERS
        deliveries = sum(child.folder is not None and not child.is_slow for child in helpers)
        return deliveries < MAX_DELIVERIES and of_folder < MAX_OF_FOLDER

    def _postpone(self, job: str, child: _Child, status: int) -> None:
        """Double the delay before the next try each time: a full disk may get space."""
        delay = self._retry_delay[job] = min(2 * self._retry_delay.get(job, 0.25), 60.0)
        self._retry_at[job] = time.monotonic() + delay
        self._failed_statuses[job] = status
        line = child.last_log_line(status)
        _log.error("%s: %s failed, tried again in %g s: %s", job, child.kind, delay, line)

    @contextlib.contextmanager
    def _log(self, job: str, kind: str) -> Iterator[tuple[Path, int]]:
        """Open the log of a process. On a full disk it is lost, and the process starts."""
        path = self._log_path(job, kind)
        try:
            log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        except OSError as error:
            _log.warning("%s: %s", path.name, error.strerror)
            log = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        try:
            yield path, log
        finally:
            os.close(log)

    def _log_path(self, job: str, kind: str) -> Path:
        return self._folder / f"{job}.{kind}.log"

    def _directory(self, job: str) -> str:
        return str(self._exchange.root / job)


def has_python() -> bool:
    """Tell whether this process's interpreter is there: without it no job can be finished."""
    return Path(sys.executable).exists()


def _kill_session(pid: int) -> None:
    """Kill a runner, with its process group where it leads one."""
    if os.getpgid(pid) == pid:
        os.killpg(pid, signal.SIGKILL)
    else:
        os.kill(pid, signal.SIGKILL)
