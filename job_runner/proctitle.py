"""Changes the command line of a forked process, which would else show its parent's.

The system reads the command line from the memory that held the arguments at the start, and a
process may write there (proc(5): `arg_start` and `arg_end` of `stat`). The package setproctitle
also takes the space of the environment and joins all arguments into one text: a search for a
process by one argument, or by a variable, would not find it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

from .host.proc import ARGUMENTS, stat_fields


def fits_command_line(command: Sequence[str]) -> bool:
    """Tell whether a fork of this process can show `command`. Only Linux can."""
    start, end = _space()
    return len(_line(command)) <= end - start


def set_command_line(command: Sequence[str]) -> None:
    """Show `command`, which fits, as the command line of this process.

    The rest of the area is filled with zeros and reads as empty trailing arguments: a process
    cannot shrink it.
    """
    start, end = _space()
    ctypes.memmove(start, _line(command).ljust(end - start, b"\0"), end - start)


def _space() -> tuple[int, int]:
    """Return where in memory the arguments begin and end; both 0 where the system hides it."""
    try:
        start, end = map(int, stat_fields("self")[ARGUMENTS])
    except (OSError, ValueError):
        return 0, 0
    return start, end


def _line(command: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(argument) + b"\0" for argument in command)
