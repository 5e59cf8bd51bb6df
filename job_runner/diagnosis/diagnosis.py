"""What is known about a run when it ends, and the end that follows from it.

An exception alone, or a signal alone, says too little. Memory pressure, the last printed line and
the submitter's packages decide what the user is told.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from typing import Any

from ..host.gpu_devices import VISIBLE_DEVICES
from ..resources.host_memory import MemoryStatus
from . import endings, error_patterns
from .cell_place import CellPlace
from .endings import End
from .error_patterns import CellFailure, OutOfMemoryMatch
from .missing_module import missing_module_advice

Record = dict[str, Any]
_MAX_LINE = 200
"""Characters of the last line that a message shows."""


class Diagnosis:
    """Follows the records of a run, and constructs its end.

    `memory_status` returns how the run stands with memory. `request` is the job's request.json, and
    `environ` the kernel's environment.
    """

    def __init__(
        self,
        memory_status: Callable[[], MemoryStatus],
        request: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._memory_status = memory_status
        self._request = request or {}
        # A job without a GPU gets this variable empty: what it allocates is the host's memory.
        self._sees_gpus = (environ or {}).get(VISIBLE_DEVICES) != ""
        self._last_line = ""
        self._reported_kills = 0

    def on_record(self, record: Record) -> None:
        """Remember the last line that the run printed."""
        if record.get("k") != "output":
            return
        text = record["output"].get("text")
        if isinstance(text, str):
            lines = text[-4 * _MAX_LINE :].rstrip().splitlines()
            if lines:
                self._last_line = lines[-1].rpartition("\r")[2].strip()[:_MAX_LINE]

    def new_oom_kills(self) -> str:
        """Return a line for the running cell if processes were killed since the last call.

        A pool that lost a worker may wait for it for ever, so users are told at once.
        """
        memory = self._memory_status()
        if memory.kills <= self._reported_kills:
            return ""
        self._reported_kills = memory.kills
        return f"[{endings.kills_text(memory)}]\n"

    def cell_failed(self, failure: CellFailure) -> End:
        """Return the end for an exception in a cell."""
        memory = self._memory_status()
        if memory.kills and error_patterns.is_lost_worker(failure):
            return endings.worker_out_of_memory(failure, memory)
        match = error_patterns.find_out_of_memory(failure)
        if match is not None:
            kind, text = match
            if kind is OutOfMemoryMatch.GPU and self._sees_gpus:
                return endings.gpu_out_of_memory(failure, text)
            return endings.out_of_memory(failure, text, memory)
        end = endings.cell_error(failure, self._advice(failure))
        return endings.with_oom_note(end, memory) if end.reason == "CellError" else end

    def _advice(self, failure: CellFailure) -> str:
        module = error_patterns.missing_module(failure)
        if module is not None:
            return missing_module_advice(self._request, module)
        if self._sees_gpus and error_patterns.is_gpu_library_error(failure):
            return endings.FULL_GPU_ADVICE
        return ""

    def kernel_died(self, status: int | None, last_log_line: str, cell: CellPlace | None) -> End:
        """Return the end for a kernel that died in `cell`, None between two cells."""
        memory = self._memory_status()
        if status == -signal.SIGKILL and (memory.kills or memory.near_limit):
            return endings.killed_for_memory(memory, cell)
        end = endings.kernel_died(status, cell, self._last_line, last_log_line)
        return endings.with_oom_note(end, memory)

    def interrupted(self, end: End) -> End:
        """Return the end for a run that was ended from outside."""
        return endings.with_oom_note(end, self._memory_status())
