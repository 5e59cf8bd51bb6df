"""What a process shows as its command line: a copy of another one is to show its own.

The system reads it from the memory in which the arguments were handed over, and a process may
write there (proc(5): `arg_start` and `arg_end` of `stat`). setproctitle, which others use, takes
the space of the variables behind it as well, and makes one text of all arguments: who looks for a
process by one argument, or by a variable, would not find it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

_STAT = Path("/proc/self/stat")
_ARG_START, _ARG_END = 45, 46
"""Their places after the name; proc(5) counts from 1, and two fields more."""


def fits_command_line(command: Sequence[str]) -> bool:
    """Tell whether a copy of this process can show `command`; never elsewhere than on Linux."""
    start, end = _space()
    return len(_line(command)) <= end - start


def set_command_line(command: Sequence[str]) -> None:
    """Show `command`, which fits, as the command line of this process.

    What is left of the space looks like empty arguments behind it: less of it nobody may show.
    """
    start, end = _space()
    ctypes.memmove(start, _line(command).ljust(end - start, b"\0"), end - start)


def _space() -> tuple[int, int]:
    """Return where in memory the arguments begin and end; both 0 where nobody tells."""
    try:
        fields = _STAT.read_text().rpartition(")")[2].split()
        return int(fields[_ARG_START]), int(fields[_ARG_END])
    except (OSError, IndexError, ValueError):
        return 0, 0


def _line(command: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(argument) + b"\0" for argument in command)
