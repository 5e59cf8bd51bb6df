"""Puts results together in a few processes of their own, whose memory and time are bounded.

A hostile notebook may write a journal that no process can fold. Such a fold harms itself only: it
is ended, and a later try folds the beginning of the journal and says so in the result.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ...exchange import FileExchange
from ...exchange.ballast import release_for_end
from .next_step import EndAttempt

PROCESSES = 2
MAX_MEMORY = 512 << 20
"""Bytes of address space of a fold."""
MAX_SECONDS = 600.0
SUCCEEDED = 0
CANNOT_WRITE = 74
PASSING = (CANNOT_WRITE, 75)
"""Exit statuses of `job_runner finish`: the disk failed, or another process is at it."""
MAX_WORDS = 4096
"""Bytes of what a fold says that are logged: the last ones."""
BEGINNING = 16 << 20
"""Bytes of a journal that are folded where folding all of it has failed."""
MAX_KILLS = 5
"""Tries of a whole journal that are killed, after which its beginning is folded. The waits before
them take half a minute: memory that others use may be free by then."""
_KILLS_OF_TIMEOUT = 3
"""For how many a try counts that takes too long: a second one is enough."""
MAX_FAILURES = 10
"""Failures of a fold itself, after which it is given up: not of the disk, and not killed."""
_NO_RESULT = "Its result could not be put together, as the controller's log says. Its log is kept."
MIN_RETRY_DELAY, MAX_RETRY_DELAY = 2.0, 60.0
_OOM_SCORE = 1000
"""Where the container is out of memory the kernel ends a fold, and not the controller."""
_log = logging.getLogger(__name__)


class Folds:
    """Runs `job_runner finish` for attempts that have ended. Call it on the event loop only.

    `on_end` is called with a job whose outcome was written. `max_line` is how many bytes a record
    of a journal may have, None: as many as it likes.
    """

    def __init__(
        self, exchange: FileExchange, max_line: int | None, on_end: Callable[[str], None]
    ) -> None:
        self._exchange = exchange
        self._max_line = max_line
        self._on_end = on_end
        self._slots = asyncio.Semaphore(PROCESSES)
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, job: str, end: EndAttempt) -> None:
        """Finish an attempt of a job in the background, unless one is under way.

        Its reason counts where neither the runner nor the agent said how it ended.
        """
        if job not in self._tasks:
            _log.info(
                "%s: attempt %d has ended; unless it said how: %s %s",
                *(job, end.attempt, end.reason, end.message),
            )
            task = asyncio.create_task(self._finish(job, end))
            self._tasks[job] = task
            task.add_done_callback(lambda _: self._tasks.pop(job, None))

    async def _finish(self, job: str, end: EndAttempt) -> None:
        """Try until it succeeds, or the job is gone; after each failure wait longer.

        After `MAX_FAILURES` the attempt ends without a result, so that its job can be deleted.
        """
        delay, failures, kills = MIN_RETRY_DELAY, 0, 0
        status: int | None = SUCCEEDED
        max_line = [] if self._max_line is None else ["--max-line", str(self._max_line)]
        limits = max_line
        while (directory := self._exchange.root / job).is_dir():
            async with self._slots:
                try:
                    if status == CANNOT_WRITE:
                        await asyncio.to_thread(release_for_end, self._exchange.root, job)
                    status = await _run(directory, [*_options(end), *limits])
                except Exception:  # as of a host without another process: it is tried again, too
                    _log.exception("%s: no process puts its result together", job)
                    status = CANNOT_WRITE
            if status == SUCCEEDED:
                self._on_end(job)
                return
            _log.warning("%s: its result cannot be put together (exit status %s)", job, status)
            if status is None or status < 0:
                # Where the container has no memory folds are killed first.
                kills += _KILLS_OF_TIMEOUT if status is None else 1
            elif status not in PASSING:
                failures += 1
            if failures or kills >= MAX_KILLS:  # this journal is too much
                beginning = BEGINNING if failures < MAX_FAILURES else 0
                limits = [*max_line, "--max-journal", str(beginning)]
            if failures == MAX_FAILURES:
                end = replace(end, reason="BackendError", message=_NO_RESULT)
            await asyncio.sleep(delay)
            delay = min(2 * delay, MAX_RETRY_DELAY)


def _options(end: EndAttempt) -> list[str]:
    """Return the options that say how an attempt ended.

    A notebook may have written its reason and message. So they may begin with a dash, and have
    characters that no argument of a process can have.
    """
    options = [f"--attempt={end.attempt}", f"--reason={end.reason}", f"--message={end.message}"]
    return [text.encode(errors="replace").decode().replace("\0", "?") for text in options]


async def _run(directory: Path, options: list[str]) -> int | None:
    """Run `job_runner finish`; return its exit status, None if it took too long."""
    command = (sys.executable, "-m", "job_runner", "finish", str(directory), *options)
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    with contextlib.suppress(OSError):
        resource.prlimit(process.pid, resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
        Path(f"/proc/{process.pid}/oom_score_adj").write_text(str(_OOM_SCORE))
    try:
        _, stderr = await asyncio.wait_for(process.communicate(), MAX_SECONDS)
        if stderr:
            _log.info(
                "%s: %s", directory.name, stderr[-MAX_WORDS:].decode(errors="replace").strip()
            )
        return process.returncode
    except asyncio.TimeoutError:
        return None
    finally:
        if process.returncode is None:  # too slow, or the controller ends
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
