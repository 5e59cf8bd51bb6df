"""What carriage returns and backspaces leave of a stream's text: what JupyterLab would have saved.

The rules are those of JupyterLab's output model (`processText`): `\\r` goes to the beginning of the
line, what follows overwrites; `\\b` takes a character away; `\\n` goes to the end of the text. So
20,000 updates of a progress bar are one line, here as there.
"""

from __future__ import annotations

import re

_CONTROL = re.compile("[\b\r]")
_PIECES = re.compile("([\b\r])")


def settle(text: str) -> tuple[str, str]:
    """Return what is left of `text`, and what to put between that and the text that follows.

    The second is empty unless the cursor stands before the end of the last line.
    """
    if _CONTROL.search(text) is None:
        return text, ""
    lines = text.split("\n")
    cursor = 0
    for number, line in enumerate(lines):
        if _CONTROL.search(line) is not None:
            lines[number], cursor = _settle_line(line)
        else:
            cursor = len(line)
    resume = "" if cursor == len(lines[-1]) else "\r" + lines[-1][:cursor]
    return "\n".join(lines), resume


def _settle_line(line: str) -> tuple[str, int]:
    """Return what is left of one line, and where in it the cursor is."""
    text: list[str] = []  # so that long lines do not cost the square of their length
    cursor = 0
    for piece in _PIECES.split(line):
        if piece == "\r":
            cursor = 0
        elif piece == "\b":
            if cursor:
                cursor -= 1
                del text[cursor : cursor + 2]
        else:
            text[cursor : cursor + len(piece)] = piece
            cursor += len(piece)
    return "".join(text), cursor
