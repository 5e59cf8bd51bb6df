"""What is known about a run when it ends, and the end that follows from it.

An exception alone, or a signal alone, says too little: whether memory was short, what was printed
last and which packages the submitter had decide what the user is told.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from typing import Any

from ..resources.host_memory import MemoryStatus
from . import endings, error_patterns
from .endings import End
from .error_patterns import CellFailure, OutOfMemoryMatch
from .missing_module import MissingModuleAdvice

Record = dict[str, Any]
_LINE = 200
"""Characters of the last line that a message shows."""


class Diagnosis:
    """Sees the records of a run, and makes its ends.

    `figures` tells how the run stands with memory, `request` what was asked; `environ` is the
    kernel's environment.
    """

    def __init__(
        self,
        figures: Callable[[], MemoryStatus],
        request: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._figures = figures
        self._missing = MissingModuleAdvice(request or {})
        # A job without a GPU gets this variable empty: what it allocates is the host's memory.
        self._sees_gpus = (environ or {}).get("CUDA_VISIBLE_DEVICES") != ""
        self._said = ""
        self._kills_told = 0

    def hear(self, record: Record) -> None:
        """Take a record of the run: the last line that was printed is kept."""
        if record.get("k") != "output":
            return
        text = record["output"].get("text")
        if isinstance(text, str):
            lines = text[-4 * _LINE :].rstrip().splitlines()
            if lines:
                self._said = lines[-1].rpartition("\r")[2].strip()[:_LINE]

    def news(self) -> str:
        """Return a line for the running cell if processes were killed since it was asked last.

        A pool that lost a worker may wait for it for ever: whoever looks on is told at once.
        """
        figures = self._figures()
        if figures.kills <= self._kills_told:
            return ""
        self._kills_told = figures.kills
        return f"[{endings.kills_text(figures)}]\n"

    def cell_failed(self, failure: CellFailure) -> End:
        """Return the end for an exception in a cell."""
        figures = self._figures()
        if figures.kills and error_patterns.is_lost_worker(failure):
            return endings.worker_out_of_memory(failure, figures)
        found = error_patterns.find_out_of_memory(failure)
        if found is not None:
            whose, said = found
            if whose is OutOfMemoryMatch.GPU and self._sees_gpus:
                return endings.gpu_out_of_memory(failure, said)
            return endings.out_of_memory(failure, said, figures)
        module = error_patterns.missing_module(failure)
        end = endings.cell_error(failure, "" if module is None else self._missing.advice(module))
        return self._noted(end, figures) if end.reason == "CellError" else end

    def kernel_died(self, status: int | None, last_words: str, cell: int | None) -> End:
        """Return the end for a kernel that died in `cell`; None: between two cells."""
        figures = self._figures()
        if status == -signal.SIGKILL and (figures.kills or figures.near_limit):
            return endings.killed_for_memory(figures, cell)
        return self._noted(endings.kernel_died(status, cell, self._said, last_words), figures)

    def broken_off(self, end: End) -> End:
        """Return the end for a run that was ended from outside."""
        return self._noted(end, self._figures())

    def _noted(self, end: End, figures: MemoryStatus) -> End:
        return endings.with_oom_note(end, figures) if figures.kills else end
