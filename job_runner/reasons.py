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
    """Why a run is over. `cell` is the index (in the prepared notebook) of the cell it ended in."""

    reason: str | None
    message: str | None
    exit_code: int
    cell: int | None = None
    execution_count: int | None = None

    @property
    def state(self) -> str:
        """Return the outcome's state."""
        return "failed" if self.reason else "succeeded"


SUCCESS = End(None, None, Exit.SUCCEEDED)


class RunFailed(Exception):
    """Ends a run; `end` says why."""

    def __init__(self, end: End) -> None:
        super().__init__(end.message)
        self.end = end


def bad_notebook(error: object) -> RunFailed:
    """Return the failure for a notebook that cannot be read."""
    message = f"The notebook cannot be run: {error}."
    return RunFailed(End("BadNotebook", message, Exit.WRONG_CALL))


def no_kernel(name: str, error: object) -> RunFailed:
    """Return the failure for a kernel that is not installed or does not start."""
    message = f"The kernel {name!r} is not there or did not start: {error}"
    return RunFailed(End("NoKernel", message, Exit.NO_KERNEL))


def kernel_died(number: int | None, cell: int, *, out_of_memory: bool) -> End:
    """Return the end for a kernel that died in `cell`; `number` is its exit status."""
    where = f"in cell {cell + 1}"
    if out_of_memory:
        message = f"Out of memory {where}: the kernel was killed. Choose a flavor with more memory."
        return End("OutOfMemory", message, Exit.KERNEL_DIED, cell)
    how = f"signal {-number}" if number is not None and number < 0 else f"exit status {number}"
    message = f"The kernel died {where} ({how}); what it had printed is kept."
    return End("KernelDied", message, Exit.KERNEL_DIED, cell)


def cell_error(name: str, value: str, cell: int, execution_count: int | None) -> End:
    """Return the end for an exception in `cell`, by its class `name`."""
    where = f"Cell {cell + 1}"
    if name == "SystemExit":
        message = f"{where} ended the run early with sys.exit({value}); later cells did not run."
        return End("ExitedEarly", message, Exit.CELL, cell, execution_count)
    if name == "StdinNotImplementedError":
        message = f"{where} asked for keyboard input; a job has nobody to ask. Use a parameter."
        return End("InputRequested", message, Exit.CELL, cell, execution_count)
    first_line = value.splitlines()[0][:300] if value else ""
    message = f"{where} raised {name}: {first_line}" if first_line else f"{where} raised {name}."
    return End("CellError", message, Exit.CELL, cell, execution_count)


def deadline(seconds: float, cell: int) -> End:
    """Return the end for a run that took longer than its `max_runtime`."""
    message = f"The time limit of {seconds:g} s was reached in cell {cell + 1}."
    return End("DeadlineExceeded", message, Exit.DEADLINE, cell)


def terminated(cell: int | None) -> End:
    """Return the end for a run that was told to stop."""
    where = "" if cell is None else f" in cell {cell + 1}"
    message = f"The run was told to stop{where}; everything printed until then is kept."
    return End("Terminated", message, Exit.TERMINATED, cell)
