"""The exit codes of the runner: a fixed contract."""

from __future__ import annotations

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
