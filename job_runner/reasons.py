"""How a run can end, with the exit code and the sentence for each: a fixed contract."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of the runner. They count only together with outcome.json."""

    SUCCEEDED = 0
    CELL = 1
    WRONG_CALL = 2
    NO_KERNEL = 3
    KERNEL_DIED = 4
    DEADLINE = 5
    INTERNAL = 70
    IO = 74
    BUSY = 75
    TERMINATED = 143


@dataclass(frozen=True)
class End:
    """Why a run is over. `cell` is the index (in the prepared notebook) of the cell it ended in.

    `exit_code` is None where there was no process left to exit.
    """

    reason: str | None
    message: str | None
    exit_code: int | None
    cell: int | None = None
    execution_count: int | None = None

    @property
    def state(self) -> str:
        """Return the outcome's state."""
        return "failed" if self.reason else "succeeded"


SUCCESS = End(None, None, Exit.SUCCEEDED)

_GPU_MEMORY = {"OutOfMemoryError", "ResourceExhaustedError"}
_GPU_MEMORY_TEXT = ("CUDA out of memory", "RESOURCE_EXHAUSTED")


class RunFailed(Exception):
    """Ends a run; `end` says why."""

    def __init__(self, end: End) -> None:
        super().__init__(end.message)
        self.end = end


def bad_notebook(error: object) -> RunFailed:
    """Return the failure for a notebook that cannot be read or prepared."""
    message = f"The notebook cannot be run: {_first_line(error)}."
    return RunFailed(End("BadNotebook", message, Exit.WRONG_CALL))


def no_folder(folder: object) -> RunFailed:
    """Return the failure for a working directory that is gone."""
    message = f"The notebook's folder {folder} is not there any more."
    return RunFailed(End("BadNotebook", message, Exit.WRONG_CALL))


def no_kernel(name: str, why: object) -> RunFailed:
    """Return the failure for a kernel that is not installed or does not start."""
    message = f"The kernel {name!r} is not installed or did not start: {why}"
    return RunFailed(End("NoKernel", message, Exit.NO_KERNEL))


def kernel_died(
    status: int | None, last_words: str, cell: int | None, *, out_of_memory: bool
) -> End:
    """Return the end for a kernel that died in `cell`, by its exit status (negative: a signal).

    `cell` is None for one that died between two cells.
    """
    if out_of_memory:
        message = (
            f"Out of memory{_in(cell)}: the kernel was killed. Choose a flavor with more memory."
        )
        return End("OutOfMemory", message, Exit.KERNEL_DIED, cell)
    how = f"signal {-status}" if status is not None and status < 0 else f"exit status {status}"
    said = f" Its last words: {last_words}" if last_words else ""
    message = f"The kernel died{_in(cell)} ({how}); what it had printed is kept.{said}"
    return End("KernelDied", message, Exit.KERNEL_DIED, cell)


def over_memory(used: int, limit: int, cell: int | None) -> End:
    """Return the end for a run whose processes used more memory than the request allows."""
    amount = _amounts(used, limit)
    message = f"used {amount}{_in(cell)}; what it had printed is kept. Choose a larger flavor."
    return End("OutOfMemory", message, Exit.KERNEL_DIED, cell)


def cell_error(name: str, value: str, cell: int, execution_count: int | None) -> End:
    """Return the end for an exception in `cell`, by its class `name`."""
    where = f"Cell {cell + 1}"
    if name == "SystemExit":
        message = f"{where} ended the run early with sys.exit({value}); later cells did not run."
        return End("ExitedEarly", message, Exit.CELL, cell, execution_count)
    if name == "StdinNotImplementedError":
        message = f"{where} asked for keyboard input; a job has nobody to ask. Use a parameter."
        return End("InputRequested", message, Exit.CELL, cell, execution_count)
    said = _first_line(value)
    if name in _GPU_MEMORY or any(text in value for text in _GPU_MEMORY_TEXT):
        message = f"{where} ran out of GPU memory ({said}). Choose a device or flavor with more."
        return End("GpuOutOfMemory", message, Exit.CELL, cell, execution_count)
    message = f"{where} raised {name}: {said}" if said else f"{where} raised {name}."
    return End("CellError", message, Exit.CELL, cell, execution_count)


def deadline(seconds: float, cell: int | None) -> End:
    """Return the end for a run that took longer than its `max_runtime`."""
    message = f"The time limit of {seconds:g} s was reached{_in(cell)}; what was printed is kept."
    return End("DeadlineExceeded", message, Exit.DEADLINE, cell)


def terminated(cell: int | None) -> End:
    """Return the end for a run that was told to stop."""
    message = f"The run was told to stop{_in(cell)}; everything printed until then is kept."
    return End("Terminated", message, Exit.TERMINATED, cell)


def disk_full(cell: int | None) -> End:
    """Return the end for a run whose journal found no space left."""
    message = f"The disk of the exchange is full{_in(cell)}; what was written until then is kept."
    return End("DiskFull", message, Exit.IO, cell)


def _amounts(used: int, limit: int) -> str:
    """Return `2.3 of 2 GiB`, with as many digits as tell the two apart."""
    power, unit = (30, "GiB") if limit >= 1 << 30 else (20, "MiB")
    for digits in range(1, 7):
        texts = [f"{round(size / (1 << power), digits):g}" for size in (used, limit)]
        if texts[0] != texts[1]:
            break
    return f"{texts[0]} of {texts[1]} {unit}"


def _in(cell: int | None) -> str:
    return "" if cell is None else f" in cell {cell + 1}"


def _first_line(text: object) -> str:
    return (str(text).strip().splitlines() or [""])[0][:300].rstrip(".")
