"""One attempt of a job, from claim to outcome: `job_runner run <job directory>`."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

from ..diagnosis import endings
from ..diagnosis.endings import End, RunFailed
from ..diagnosis.exit_codes import Exit
from ..kernel.process import KernelProcess
from ..log import log_line
from ..notebook.metadata import kernel_name
from ..protocol import documents, layout, liveness
from ..protocol.journal.journal import JournalWriter
from ..protocol.result.result import NO_SPACE
from . import disk_reserve, workdir
from .artifacts import collect_artifacts, sync_scratch
from .attempt import Attempt
from .finalize import summarize_journal, write_ending
from .output_limit import OutputLimiter


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
        log_line(str(error))
        return Exit.BUSY
    if request.get("request_id"):  # by which log lines on other machines are found, too
        log_line(f"{job_dir.name}: attempt {number} request_id={request['request_id']}")
    try:
        liveness.remove_claim_drafts(job_dir)
        with claim.keep_heartbeat():
            return _run_claimed(job_dir, claim, request)
    except OSError as error:
        # Without an outcome the attempt counts as dead, and `finish` takes it up again.
        if claim.directory.exists():
            log_line(f"The exchange cannot be written: {error}")
        else:
            log_line("Somebody removed the files of the run while it ran.")
        return Exit.IO
    finally:
        claim.release()


def _run_claimed(job_dir: Path, claim: liveness.Claim, request: dict[str, Any]) -> int:
    """Run the attempt, record how it ended, and write the outcome. Raises OSError."""
    directory = claim.directory
    attempt = Attempt(
        job_dir,
        claim,
        request,
        JournalWriter(directory / layout.JOURNAL),
        OutputLimiter(request.get("output_limit")),
    )
    end = None
    try:
        with disk_reserve.reserved(directory), contextlib.ExitStack() as resources:
            execution_end = _execute(attempt, resources)
            try:
                # The end is recorded before the kernel exits, which may take long: a run that
                # succeeded has succeeded, whatever happens then.
                end = attempt.conclude(execution_end)
            except OSError:
                # A kernel that lives could fill the disk reserve, which the end needs now.
                resources.close()
                disk_reserve.release(directory)
                end = attempt.conclude(execution_end)
    except Exception as error:
        if end is None:
            raise
        log_line(f"Afterwards: {error}")
    for note in (*attempt.notes, *collect_artifacts(job_dir, directory)):
        end = endings.with_note(end, note)
    result, usage = attempt.write_result(), attempt.usage.to_json()
    finished = max(time.time(), attempt.started + attempt.elapsed)
    write_ending(job_dir, directory, end, result, attempt.started, usage, finished)
    log_line(f"{end.reason}: {end.message}" if end.reason else "Every cell ran.")
    return int(end.exit_code or 0)


def _execute(attempt: Attempt, resources: contextlib.ExitStack) -> End:
    """Execute the notebook; return how that ended, whatever went wrong.

    The kernel lives until `resources` is closed.
    """
    try:
        return _execute_in_kernel(attempt, resources)
    except RunFailed as failure:
        return failure.end
    except OSError as error:
        cell = summarize_journal(attempt.directory).cell
        if error.errno in NO_SPACE:
            return endings.disk_full(cell)
        return End("BackendError", f"The runner could not go on: {error}.", Exit.IO, cell)
    except Exception as error:  # the last line of defence: the user is told, and nothing is lost
        cell = summarize_journal(attempt.directory).cell
        message = f"The runner failed: {type(error).__name__}: {error}."
        return End("BackendError", message, Exit.INTERNAL, cell)


def _execute_in_kernel(attempt: Attempt, resources: contextlib.ExitStack) -> End:
    """Start the kernel, and only then import what takes long. Raises RunFailed, OSError."""
    snapshot = (attempt.job_dir / layout.SNAPSHOT).read_bytes()
    process = KernelProcess(
        kernel_name(snapshot, attempt.request.get("kernel")),
        str(attempt.directory),
        attempt.request.get("kernel_spec"),
    )
    resources.callback(process.close)
    start = {"kernel": process.name, "sockets": str(process.folder)}
    attempt.emit({"k": "start", "v": documents.VERSION, **start})
    failure = _start(attempt, process)
    from .execution import Execution, prepare_attempt

    if failure is not None:
        prepare_attempt(attempt, process)  # the result shows the reason
        raise failure
    end = resources.enter_context(Execution(attempt, process)).run()
    sync_scratch(attempt.job_dir, attempt.directory)
    return end


def _start(attempt: Attempt, process: KernelProcess) -> RunFailed | None:
    """Start the kernel; return why that failed, or None. Raises OSError."""
    try:
        cwd = workdir.working_directory(attempt.job_dir, attempt.directory, attempt.request)
        process.start(cwd, attempt.variables)
        attempt.emit({"k": "kernel", "pid": process.pid})
    except RunFailed as failure:
        return failure
    return None
