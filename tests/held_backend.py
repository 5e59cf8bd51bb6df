"""A backend that runs no code and keeps jobs where a test needs them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Literal

from job_runner.attempt.finish import finish_job
from job_runner.protocol import layout, liveness
from jupyter_to_job.backends.memory import MemoryBackend, records_of, write_journal
from jupyter_to_job.exchange import FileExchange

Hold = Literal["queued", "running"]
TO_THE_FIRST_OUTPUT = 3
"""Records of a run up to the first cell's output."""


class HeldBackend(MemoryBackend):
    """`ended` is called with the name of each job that has ended.

    With `hold` a job stays `queued`, or `running` in its first cell, until a cancel.
    """

    def __init__(
        self,
        exchange: FileExchange,
        ended: Callable[[str], object] = str,
        hold: Hold | None = None,
    ) -> None:
        super().__init__(exchange)
        self._ended = ended
        self._hold = hold
        self._running: dict[str, liveness.Claim] = {}

    def notify(self, *jobs: str) -> None:
        for job in jobs:
            self._notify(job)

    def _notify(self, job: str) -> None:
        directory = self._exchange.directory(job)
        if (directory / layout.CANCEL).exists():
            if job in self._running:
                self._running.pop(job).release()
            finish_job(directory, "Terminated", "The run was told to stop.")
        elif self._hold is None:
            super().notify(job)
        elif self._hold == "running" and job not in self._running:
            claim = self._running[job] = liveness.claim_attempt(directory, 1)
            write_journal(claim.directory, islice(records_of(directory), TO_THE_FIRST_OUTPUT))
        if self._hold is None or (directory / layout.CANCEL).exists():
            self._ended(job)
