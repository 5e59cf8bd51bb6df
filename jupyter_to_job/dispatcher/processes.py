"""The processes of the dispatcher: runners, and `job_runner finish` for those that died.

Runners are sessions of their own and outlive the dispatcher; what is kept here about them is only
what a new dispatcher can do without.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from job_runner.protocol import documents, layout, liveness

from ..backends.local.daemon import FOLDER
from ..exchange import FileExchange, Request

KILL_AFTER = 10.0
"""Seconds between SIGTERM and SIGKILL for a cancelled run."""
_BUSY = 75
_log = logging.getLogger(__name__)


@dataclass
class _Child:
    process: subprocess.Popen[bytes]
    log: Path

    def last_words(self, status: int) -> str:
        """Return the last line that an ended process said, else its exit status."""
        with contextlib.suppress(FileNotFoundError):
            lines = self.log.read_text(errors="replace").strip().splitlines()
            if lines:
                return lines[-1]
        return f"exit status {status}"


class Processes:
    """Starts and ends processes for the jobs of one exchange."""

    def __init__(self, exchange: FileExchange) -> None:
        self._exchange = exchange
        self._runners: dict[str, _Child] = {}
        self._finishing: dict[str, _Child] = {}
        self._told: dict[str, float] = {}
        self._why: dict[str, tuple[str, str]] = {}
        self._delay: dict[str, float] = {}
        self._retry_at: dict[str, float] = {}

    def start_runner(self, request: Request) -> None:
        """Start the first attempt of a job in the submitter's interpreter and environment."""
        arguments = ["-m", "job_runner", "run", self._directory(request.name), "--attempt", "1"]
        environment = request.environment
        child = self._spawn(
            request.name, [environment.interpreter, *arguments], environment.variables
        )
        if child is not None:
            self._runners[request.name] = child
            _log.info("%s: runner %d", request.name, child.process.pid)

    def starting(self, name: str) -> str:
        """Tell whether a job without an attempt waits, or has a runner on its way to one."""
        if name in self._runners:
            return "running"
        if name in self._why:
            self.finish(name, *self._why[name])
            return "ending"
        return "waiting"

    def finish(self, name: str, reason: str, message: str) -> None:
        """Have result and outcome of a dead attempt written, by a process of its own."""
        if name in self._finishing or time.monotonic() < self._retry_at.get(name, 0.0):
            return
        # Our own interpreter, not the submitter's: that one may be gone.
        command = [sys.executable, "-m", "job_runner", "finish", self._directory(name)]
        command += ["--reason", reason, "--message", message]
        child = self._spawn(name, command, dict(os.environ))
        if child is not None:
            self._finishing[name] = child

    def terminate(self, name: str, attempt: Path) -> None:
        """End a living run: SIGTERM, and after `KILL_AFTER` SIGKILL to its session."""
        runner = documents.read_document(attempt / layout.RUNNER) or {}
        if not liveness.is_that_process(runner):
            return  # another host's, which ends it; or dead, and being finished
        # A runner that ended meanwhile is no error: the next scan sees its outcome.
        with contextlib.suppress(ProcessLookupError):
            if name not in self._told:
                self._told[name] = time.monotonic()
                os.kill(runner["pid"], signal.SIGTERM)
            elif time.monotonic() - self._told[name] > KILL_AFTER:
                os.killpg(runner["pid"], signal.SIGKILL)

    def why(self, name: str) -> tuple[str, str]:
        """Return reason and message for an attempt that died without an outcome."""
        lost = "The runner was killed or its host went away; what it had printed is kept."
        return self._why.get(name, ("Lost", lost))

    def owns(self, name: str) -> bool:
        """Tell whether a runner of this dispatcher is still a process."""
        return name in self._runners

    def reap(self) -> None:
        """Take notice of processes that ended."""
        for name, child in list(self._runners.items()):
            status = child.process.poll()
            if status is None:
                continue
            del self._runners[name]
            if not layout.attempts(self._exchange.root / name) and status != _BUSY:
                message = f"The runner did not start: {child.last_words(status)}"
                self._why[name] = ("RunnerMissing", message)
                _log.warning("%s: %s", name, message)
            child.log.unlink(missing_ok=True)
        for name, child in list(self._finishing.items()):
            status = child.process.poll()
            if status is None:
                continue
            del self._finishing[name]
            if status not in (0, _BUSY):
                self._postpone(name, child.last_words(status))
            child.log.unlink(missing_ok=True)

    def _postpone(self, name: str, why: str) -> None:
        """Wait longer each time before a job that could not be finished is tried again."""
        delay = self._delay[name] = min(2 * self._delay.get(name, 0.25), 60.0)
        self._retry_at[name] = time.monotonic() + delay
        _log.warning("%s: cannot be finished, tried again in %g s: %s", name, delay, why)

    def _spawn(self, name: str, command: list[str], env: dict[str, str]) -> _Child | None:
        kind = command[3]  # `run` or `finish`: both may be at one job for a moment
        log = self._exchange.root / FOLDER / f"{name}.{kind}.log"
        try:
            with log.open("wb") as output:
                process = subprocess.Popen(
                    command,
                    env=env,
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
        except OSError as error:
            self._why[name] = (
                "RunnerMissing",
                f"{command[0]} cannot be started: {error.strerror}.",
            )
            _log.warning("%s: %s", name, self._why[name][1])
            return None
        return _Child(process, log)

    def _directory(self, name: str) -> str:
        return str(self._exchange.directory(name))
