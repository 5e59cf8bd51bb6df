"""A command in a terminal of its own: what it draws, and keys that are pressed."""

from __future__ import annotations

import codecs
import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping
from pathlib import Path

from ..processes import BOUND

INTERRUPT = b"\x03"
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_UP = re.compile(r"\x1b\[(\d*)A")


class Terminal:
    """Runs a command with stdin, stdout and stderr on a pseudo terminal of a size."""

    def __init__(
        self, command: list[str], cwd: Path, env: Mapping[str, str], rows: int, columns: int
    ) -> None:
        self._seen = b""
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        shown = {k: v for k, v in env.items() if k not in ("COLUMNS", "LINES")}

        def claim() -> None:  # so that Ctrl-C reaches it
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**shown, "TERM": "xterm-256color"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=claim,
        )
        os.close(slave)

    def press(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def until_shown(self, pattern: str) -> str:
        """Read until the pattern was drawn; return all that was drawn so far."""
        end = time.monotonic() + BOUND
        while time.monotonic() < end:
            if re.search(pattern, self.text):
                return self.text
            if not self._read():
                break
        raise AssertionError(f"{pattern!r} was not shown:\n{self.text}")

    def until_ended(self) -> str:
        """Read until the command has ended; return all that was drawn."""
        while self._read():
            pass
        self.process.wait(BOUND)
        os.close(self._master)
        return self.text

    @property
    def text(self) -> str:
        """All that was drawn, without what moves the cursor and sets colours."""
        return _CONTROL.sub("", self.raw).replace("\r", "")

    @property
    def lines(self) -> list[str]:
        """Each line that was drawn, one that was drawn over as well.

        The terminal's own echo of Ctrl-C may stand anywhere, and is left out.
        """
        drawn = self.raw.replace("^C", "")
        return [_CONTROL.sub("", line) for line in re.split(r"[\r\n]+", drawn)]

    @property
    def raw(self) -> str:
        """All that was drawn; the last character may have come in part, and is left out then."""
        return codecs.getincrementaldecoder("utf-8")().decode(self._seen)

    def most_lines_up(self) -> int:
        """How far the cursor went up at once: the height of what is drawn in place, less one."""
        runs = re.findall(r"(?:\x1b\[1A(?:\x1b\[2K)?)+", self.raw)
        single = [run.count("\x1b[1A") for run in runs]
        return max([*single, *(int(n or 1) for n in _UP.findall(self.raw))], default=0)

    def _read(self) -> bool:
        """Take what comes within a second; False at the end."""
        if select.select([self._master], [], [], 1.0)[0]:
            try:
                piece = os.read(self._master, 1 << 16)
            except OSError:  # Linux says so when the other end is closed
                return False
            self._seen += piece
            return bool(piece)
        return True
