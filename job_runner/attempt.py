"""One attempt of a job, from claim to outcome: `job_runner run <job directory>`."""

from __future__ import annotations

import errno
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import gpu, reasons, reserve, scratch
from .cap import Cap
from .ending import end_record, look_back, write_ending
from .live import LiveResult
from .prepare import kernel_name
from .protocol import documents, layout, liveness
from .protocol.journal import JournalWriter
from .protocol.result import Written
from .reasons import End, Exit, RunFailed
from .spawn import KernelProcess
from .usage import Usage

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


@dataclass
class Attempt:
    """What one attempt has at hand."""

    job_dir: Path
    claim: liveness.Claim
    request: dict[str, Any]
    journal: JournalWriter
    live: LiveResult
    started: float = field(default_factory=time.time)
    usage: Usage = field(default_factory=Usage)
    cap: Cap = field(default_factory=lambda: Cap(None))
    end: End | None = None
    recorded: bool = False
    written: Written | None = None

    @property
    def directory(self) -> Path:
        """Return the attempt's directory."""
        return self.claim.directory

    @property
    def variables(self) -> dict[str, str]:
        """Return the job's own variables, but none that lead to GPUs not chosen for it."""
        asked: dict[str, str] = self.request.get("env") or {}
        chosen = os.environ.keys() & gpu.CHOICE
        return {name: value for name, value in asked.items() if name not in chosen}

    def emit(self, record: dict[str, Any]) -> None:
        """Journal one record, with the receipt of a cell that ended."""
        if record["k"] == "cell_start":
            self.usage.begin_cell()
        elif record["k"] == "cell_end":
            record = {**record, "usage": self.usage.end_cell()}
        for kept in self.cap.admit(record):
            stamped = {"t": round(time.time(), 6), **kept}
            try:
                self.journal.append(stamped)
            except OSError:
                self.live.give_up()
                raise
            self.live.feed(stamped)

    def conclude(self, end: End) -> End:
        """Journal how the run ended, once: whatever happens afterwards, it ended like this.

        Raises OSError; then it ended like this all the same, and another call tries again.
        """
        if self.end is None:
            note = self.cap.note()
            self.end = reasons.adding(end, note) if note else end
        if not self.recorded:
            self.emit(end_record(self.end, self.usage.to_json()))
            self.recorded = True
        return self.end

    def write_result(self) -> Written:
        """Close the journal and write the result, once. Raises OSError."""
        if self.written is None:
            reserve.release(self.directory)
            self.journal.close()
            self.written = self.live.write()
        return self.written


def run_job(job_dir: Path, number: int | None) -> int:
    """Execute attempt `number` (None: the next) and return the exit code of the contract.

    Raises FileNotFoundError and DocumentError for a directory that holds no readable request.
    """
    request = documents.read_document(job_dir / layout.REQUEST)
    if request is None:
        raise FileNotFoundError(f"{job_dir} holds no {layout.REQUEST}")
    number = number or max(layout.attempts(job_dir), default=0) + 1
    try:
        claim = liveness.claim_attempt(job_dir, number)
    except liveness.AttemptExists as error:
        _say(str(error))
        return Exit.BUSY
    try:
        with claim.beating():
            return _run_claimed(job_dir, claim, request)
    except OSError as error:
        # Without an outcome the attempt counts as dead, and `finish` takes it up again.
        _say(f"The exchange cannot be written: {error}")
        return Exit.IO
    finally:
        claim.release()


def _run_claimed(job_dir: Path, claim: liveness.Claim, request: dict[str, Any]) -> int:
    """Run, and write how it ended."""
    directory = claim.directory
    writer = JournalWriter(directory / layout.JOURNAL)
    live = LiveResult(job_dir, directory)
    attempt = Attempt(job_dir, claim, request, writer, live, cap=Cap(request.get("output_limit")))
    with reserve.held(directory):
        last = _guarded(attempt)
    end = attempt.conclude(last)
    result, usage = attempt.write_result(), attempt.usage.to_json()
    write_ending(job_dir, directory, end, result, attempt.started, usage)
    _say(f"{end.reason}: {end.message}" if end.reason else "Every cell ran.")
    if last is not end:
        _say(f"Afterwards: {last.message}")
    return int(end.exit_code or 0)


def _guarded(attempt: Attempt) -> End:
    """Run, and turn whatever goes wrong into an end."""
    try:
        return _run(attempt)
    except RunFailed as failure:
        return failure.end
    except OSError as error:
        cell = look_back(attempt.directory).cell
        if error.errno in _NO_SPACE:
            return reasons.disk_full(cell)
        return End("BackendError", f"The runner could not go on: {error}.", Exit.IO, cell)
    except Exception as error:  # the last line of defence: the user is told, and nothing is lost
        cell = look_back(attempt.directory).cell
        message = f"The runner failed: {type(error).__name__}: {error}."
        return End("BackendError", message, Exit.INTERNAL, cell)


def _run(attempt: Attempt) -> End:
    """Start the kernel, and only then what takes time to import. Raises RunFailed, OSError."""
    snapshot = (attempt.job_dir / layout.SNAPSHOT).read_bytes()
    process = KernelProcess(
        kernel_name(snapshot, attempt.request.get("kernel")), str(attempt.directory)
    )
    try:
        start = {"kernel": process.name, "sockets": str(process.folder)}
        attempt.emit({"k": "start", "v": documents.VERSION, **start})
        failure = _start(attempt, process)
        from .execution import execute

        return execute(attempt, process, failure)
    finally:
        process.end()
        scratch.collect_artifacts(attempt.job_dir, attempt.directory)


def _start(attempt: Attempt, process: KernelProcess) -> RunFailed | None:
    """Start the kernel. A failure is handed back: the notebook is prepared all the same."""
    try:
        cwd = scratch.working_directory(attempt.job_dir, attempt.directory, attempt.request)
        process.start(cwd, attempt.variables)
        attempt.emit({"k": "kernel", "pid": process.pid})
    except RunFailed as failure:
        return failure
    return None


def _say(text: str) -> None:
    print(f"job_runner: {text}", file=sys.stderr, flush=True)  # noqa: T201
