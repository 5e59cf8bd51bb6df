"""Constructs the end of a run: reason, exit code and sentence, which are a fixed contract."""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..protocol.units import format_bytes_of, format_duration
from .cell_place import CellPlace
from .error_patterns import CellFailure
from .exit_codes import Exit

if TYPE_CHECKING:
    from ..resources.host_memory import MemoryStatus


@dataclass(frozen=True)
class End:
    """Why a run is over. `cell` is the index, in the prepared notebook, of the cell it ended in.

    `exit_code` is None where no process was left to exit. `advice` is the part of the message that
    says what to do about an exception; the banner shows it beside papermill's own words.
    """

    reason: str | None
    message: str | None
    exit_code: int | None
    cell: int | None = None
    execution_count: int | None = None
    advice: str = ""

    @property
    def state(self) -> str:
        """Return the outcome's state."""
        return "failed" if self.reason else "succeeded"


SUCCESS = End(None, None, Exit.SUCCEEDED)

INPUT_REFUSED = "StdinNotImplementedError"
"""The class of ipykernel's exception for a cell that asks for input where nobody can answer."""
FULL_GPU_ADVICE = "GPU libraries fail like that when the GPU's memory is full: try a smaller batch."
_OUTPUT_NOTE = "what was printed is kept"
_MAX_LINE = 300
"""Characters of an exception's text that a message shows."""
_LARGER = "Choose a larger flavor, or load less at a time."
_MORE_SHM = "On a cluster a flavor with more `shm` has a larger /dev/shm."
_SIGNALS = {
    "SIGSEGV": "a native library crashed",
    "SIGBUS": "a file that it had mapped was cut, or had no room in /dev/shm or on its disk",
    "SIGILL": "a native library uses what this processor does not have",
    "SIGFPE": "a native library crashed",
    "SIGABRT": "a native library gave up",
    "SIGKILL": "something killed it: the host, or its own code",
}
"""The usual cause of a signal that ends a kernel."""


class RunFailed(Exception):
    """The run cannot go on; `end` says why."""

    def __init__(self, end: End) -> None:
        super().__init__(end.message)
        self.end = end


def bad_notebook(error: object) -> RunFailed:
    """Return the failure for a notebook that cannot be read or prepared."""
    message = f"The notebook cannot be run: {_first_line(error)}."
    return RunFailed(End("BadNotebook", message, Exit.WRONG_CALL))


def no_folder(folder: object) -> RunFailed:
    """Return the failure for a working directory that is gone."""
    message = f"The notebook's folder {folder} is not there any more. Submit it where it is now."
    return RunFailed(End("BadNotebook", message, Exit.WRONG_CALL))


def no_kernel(name: str, problem: object) -> RunFailed:
    """Return the failure for a kernel that is not installed or does not start."""
    message = (
        f"The kernel {name!r} is not installed or did not start: {_first_line(problem)}. "
        "Install it, or choose another kernel in the notebook."
    )
    return RunFailed(End("NoKernel", message, Exit.NO_KERNEL))


def kernel_died(
    status: int | None, cell: CellPlace | None, last_line: str, last_log_line: str
) -> End:
    """Return the end for a kernel that died in `cell`, by its exit status (negative: a signal).

    `cell` is None for a kernel that died between two cells. `last_line` is the last line that the
    cells printed, `last_log_line` the last one that the kernel's process itself wrote.
    """
    message = f"The kernel died{_in(cell)}: {_describe_exit(status)}; {_OUTPUT_NOTE}."
    if last_line:
        message += f' The last output was "{last_line}".'
    if last_log_line:
        message += f' Its process said last: "{last_log_line}".'
    if status == -signal.SIGBUS:
        message += f" {_MORE_SHM}"
    return End("KernelDied", message, Exit.KERNEL_DIED, _index(cell))


def killed_for_memory(memory: MemoryStatus, cell: CellPlace | None) -> End:
    """Return the end for a kernel that the operating system killed for memory."""
    amount = format_bytes_of(memory.used, memory.limit)
    cause = "was killed for it" if memory.kills else "was killed, most likely for that"
    message = f"The run used {amount}{_in(cell)} and {cause}; {_OUTPUT_NOTE}. {_LARGER}"
    return End("OutOfMemory", message, Exit.KERNEL_DIED, _index(cell))


def memory_limit_exceeded(used: int, limit: int, cell: CellPlace | None) -> End:
    """Return the end for a run whose processes used more memory than the request allows."""
    amount = format_bytes_of(used, limit)
    message = f"The run used {amount}{_in(cell)}; {_OUTPUT_NOTE}. {_LARGER}"
    return End("OutOfMemory", message, Exit.KERNEL_DIED, _index(cell))


def cell_error(failure: CellFailure, advice: str = "") -> End:
    """Return the end for an exception that is not about memory; the message ends with `advice`."""
    where = _capitalize(failure.place)
    if failure.name == "SystemExit" and failure.ends_run:
        return _exited(f"sys.exit({_exit_argument(failure.value)})", failure)
    if _is_input_request(failure):
        message = f"{where} asked for keyboard input, and a job has nobody to ask. Use a parameter."
        return _of_cell("InputRequested", message, failure)
    text = _first_line(failure.value)
    # Kernels of other languages than Python may name no class.
    parts = [f"{where} raised {failure.name}" if failure.name.strip() else f"{where} failed", text]
    message = ": ".join(part for part in parts if part)
    end = _of_cell("CellError", f"{message}. {advice}".rstrip(), failure)
    return replace(end, advice=advice)


def exited_early(failure: CellFailure) -> End:
    """Return the end for a cell that stopped the kernel with `exit()` or `quit()`."""
    return _exited("exit() or quit()", failure)


def out_of_memory(failure: CellFailure, text: str, memory: MemoryStatus) -> End:
    """Return the end for a cell that got no memory of the operating system; `text` says so."""
    amount = format_bytes_of(memory.used, memory.limit)
    message = (
        f"{_capitalize(failure.place)} ran out of memory ({_describe(failure, text)}); "
        f"the run had used {amount}. {_LARGER}"
    )
    return _of_cell("OutOfMemory", message, failure)


def worker_out_of_memory(failure: CellFailure, memory: MemoryStatus) -> End:
    """Return the end for a cell that failed because one of its processes was killed for memory."""
    amount = format_bytes_of(memory.used, memory.limit)
    message = (
        f"A process of {failure.place} was killed for memory: the run used {amount} "
        f"({_describe(failure, failure.value)}). {_LARGER}"
    )
    return _of_cell("OutOfMemory", message, failure)


def gpu_out_of_memory(failure: CellFailure, text: str) -> End:
    """Return the end for a cell that got no memory of the GPU; `text` says so."""
    message = (
        f"{_capitalize(failure.place)} ran out of GPU memory ({_describe(failure, text)}). "
        "Choose a device or flavor with more, or a smaller batch."
    )
    return _of_cell("GpuOutOfMemory", message, failure)


def with_oom_note(end: End, memory: MemoryStatus) -> End:
    """Return an end that also says if processes of the run were killed for memory.

    The end may have this cause or another: a pool that lost a worker may wait for ever.
    """
    return with_note(end, f"Before that, {kills_text(memory)}.") if memory.kills else end


def kills_text(memory: MemoryStatus) -> str:
    """Return how many processes of the run the operating system killed for memory."""
    processes = "a process" if memory.kills == 1 else f"{memory.kills} processes"
    amount = format_bytes_of(memory.used, memory.limit)
    return f"the operating system killed {processes} of this run for memory ({amount} used)"


def with_note(end: End, note: str) -> End:
    """Return an end with another sentence in its message."""
    advice = f"{end.advice} {note}".lstrip()
    return replace(end, message=f"{end.message or ''} {note}".lstrip(), advice=advice)


def deadline(seconds: float, cell: CellPlace | None) -> End:
    """Return the end for a run that took longer than its `max_runtime`."""
    message = (
        f"The time limit of {format_duration(seconds)} was reached{_in(cell)}; {_OUTPUT_NOTE}. "
        "Give it a longer one, or a flavor that allows more."
    )
    return End("DeadlineExceeded", message, Exit.DEADLINE, _index(cell))


def terminated(cell: CellPlace | None) -> End:
    """Return the end for a run that was told to stop."""
    message = (
        f"The run was told to stop{_in(cell)}; {_OUTPUT_NOTE}. Submit it again to have it whole."
    )
    return End("Terminated", message, Exit.TERMINATED, _index(cell))


def disk_full(cell: int | None) -> End:
    """Return the end for a run whose journal found no space left, at the cell of this index."""
    message = (
        "The disk of the exchange is full; what was written until then is kept. "
        "Make room on it, and run it again."
    )
    return End("DiskFull", message, Exit.IO, cell)


def _of_cell(reason: str, message: str, failure: CellFailure) -> End:
    return End(reason, message, Exit.CELL, failure.cell.index, failure.execution_count)


def _exited(call: str, failure: CellFailure) -> End:
    message = f"{_capitalize(failure.place)} ended the run with {call}."
    if not failure.cell.is_last:
        message = (
            f"{_capitalize(failure.place)} ended the run early with {call}: later cells did not "
            "run, and only a run of all cells counts as succeeded."
        )
    return _of_cell("ExitedEarly", message, failure)


def _is_input_request(failure: CellFailure) -> bool:
    """Tell whether a cell asked for input. Each language's kernel has its own exception."""
    if failure.name == INPUT_REFUSED:
        return True
    return "does not implement stdin" in failure.value or "does not support stdin" in failure.value


def _exit_argument(value: str) -> str:
    """Return the argument of `sys.exit` as code; the kernel sends it as text."""
    text = _first_line(value)
    is_number = text.removeprefix("-").isdecimal()
    return text if is_number or text in ("", "True", "False") else repr(text)


def _describe(failure: CellFailure, text: str) -> str:
    """Return class and text of an exception; of another one in its chain only the text."""
    line = _first_line(text)
    if text != failure.value:
        return line
    return f"{failure.name}: {line}" if line else failure.name


def _describe_exit(status: int | None) -> str:
    """Return a phrase for how a process ended."""
    if status is None:
        return "its process is gone"
    if status >= 0:
        return f"its process ended with exit status {status} (os._exit, or a library that does)"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        return f"it got signal {-status}"
    cause = _SIGNALS.get(name)
    return f"{cause} ({name})" if cause else f"it got {name}"


def _in(cell: CellPlace | None) -> str:
    return "" if cell is None else f" in {cell.describe()}"


def _index(cell: CellPlace | None) -> int | None:
    return None if cell is None else cell.index


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


def _first_line(text: object) -> str:
    line = (str(text).strip().splitlines() or [""])[0]
    return line.rstrip(".") if len(line) <= _MAX_LINE else f"{line[:_MAX_LINE]}…"
