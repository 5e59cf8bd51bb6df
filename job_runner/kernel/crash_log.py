"""Reads the most informative line that a kernel's process wrote to its own stdout or stderr.

That is a crash of the interpreter, or an import that failed; the output of cells comes by messages.
But ipykernel writes there, too, what programs print that a notebook starts, so the log is limited.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

_TAIL = 16 << 10
"""Bytes from the end that are read: a dump of Python's faulthandler has hundreds of lines."""
_MAX_SIZE = 1 << 20
"""Bytes of a log from which on it is cut: it lies where others need the disk, too."""
_MAX_LINE_CHARS = 300
_FATAL = re.compile(r"^Fatal Python error: .*$", re.MULTILINE)
_FRAME = re.compile(r"\s+File \"([^\"]*)\", line (\d+) in (\S+)")
_CELL_FILE = re.compile(r"ipykernel_\d+/|<ipython-input|^<cell")


def last_log_line(path: Path) -> str:
    """Return the line of a log that best explains how its process ended; empty for an empty log.

    For a crash that Python noticed it is the error and its place, otherwise the last line.
    """
    with contextlib.suppress(OSError):
        return most_informative_line(_read_tail(path).decode(errors="replace"))
    return ""


def cut_log(path: Path) -> None:
    """Cut a large log down to its end; its writers must append."""
    with contextlib.suppress(OSError):
        if path.stat().st_size > _MAX_SIZE:
            tail = _read_tail(path)
            with path.open("ab") as log:
                log.truncate(0)
                log.write(tail)


def _read_tail(path: Path) -> bytes:
    with path.open("rb") as log:
        log.seek(max(0, log.seek(0, 2) - _TAIL))
        return log.read(_TAIL)


def most_informative_line(text: str) -> str:
    """Return the most informative line of `text` (see `last_log_line`)."""
    crash = list(_FATAL.finditer(text))
    if crash:
        return crash[-1].group() + _place(text[crash[-1].end() :])
    lines = text.strip().splitlines()
    return lines[-1].strip()[:_MAX_LINE_CHARS] if lines else ""


def _place(dump: str) -> str:
    """Return where the thread that crashed was; Python marks it as the current one."""
    thread = dump[max(dump.find("Current thread"), 0) :].partition("\n\n")[0]
    frames = _FRAME.findall(thread)
    if not frames:
        return ""
    file, line, function = frames[0]
    lines = [number for path, number, _ in frames if _CELL_FILE.search(path)]
    if _CELL_FILE.search(file):
        return f" in line {line} of the cell"
    where = f" in {function} (line {line} of {file})"
    return f"{where}, called by line {lines[0]} of the cell" if lines else where
