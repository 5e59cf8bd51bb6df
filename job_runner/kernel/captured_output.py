"""Runs in an ipykernel, before the first cell: a cell ends after the output of its programs.

What programs and C libraries print goes into a pipe, which a thread of ipykernel reads. Nobody can
tell whether it has published all of it when a cell ends, and after the last cell nobody listens any
more. So a thread of ours reads a pipe of its own, and the end of a cell waits for what is in there.

The kernel's environment has only this text: it imports nothing but the standard library.
"""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import select
import struct
import sys
import termios
import threading
from typing import Any

_TIMEOUT = 1.0
"""Seconds that the end of a cell waits at most."""
_CHUNK = 1 << 12
"""Bytes of one read. With larger ones a flood gets into the kernel's memory faster than out."""
_MAX_LOG = 2 << 20
"""Bytes of the log from which on nothing is copied to it."""
_NAMES = ("_original_stdstream_fd", "_original_stdstream_copy", "watch_fd_thread", "write")
"""The parts of an ipykernel's stream that are used here."""


def install(shell: Any) -> None:
    """Let the cells of an IPython shell wait, if its streams capture what programs print."""
    streams = (sys.stdout, sys.stderr)
    readers = [_Reader(stream) for stream in streams if _is_capturing(stream)]

    def wait(*_: object) -> None:
        with contextlib.suppress(KeyboardInterrupt):  # the cell has ended
            for reader in readers:
                reader.wait_for_captured()

    if readers:
        shell.events.register("post_run_cell", wait)


def _is_capturing(stream: Any) -> bool:
    return getattr(stream, "_should_watch", False) and all(hasattr(stream, n) for n in _NAMES)


class _Reader(threading.Thread):
    """Reads what is printed into a stream's file descriptor, in place of ipykernel's thread.

    ipykernel's keeps its own pipe, with what was printed before, and waits there.
    """

    def __init__(self, stream: Any) -> None:
        super().__init__(daemon=True)
        self._stream = stream
        self._count = 0
        self._counted = threading.Condition()
        self._pipe, writer = os.pipe()
        self.start()
        os.dup2(writer, stream._original_stdstream_fd)
        os.close(writer)
        stream.watch_fd_thread = self  # the one that ends with the stream

    def run(self) -> None:
        """Read until the stream is closed."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        poll = select.poll()
        poll.register(self._pipe, select.POLLIN)
        while True:
            poll.poll()
            # What left the pipe is written when the lock is free again.
            with self._counted:
                data = os.read(self._pipe, _CHUNK)
                if not (data and self._stream._should_watch):
                    return
                with contextlib.suppress(ValueError):  # the kernel exits
                    self._stream.write(decoder.decode(data))
                self._count += len(data)
                self._counted.notify_all()
            self._copy(data)

    def _copy(self, data: bytes) -> None:
        """Copy to the log of the kernel's process, which the runner cuts when it is large."""
        log = self._stream._original_stdstream_copy
        with contextlib.suppress(OSError):  # a full disk
            if os.fstat(log).st_size < _MAX_LOG:
                os.write(log, data)

    def wait_for_captured(self) -> None:
        """Wait until the stream has what is in the pipe now."""
        with self._counted:
            (size,) = struct.unpack("i", fcntl.ioctl(self._pipe, termios.FIONREAD, b"\0" * 4))
            end = self._count + size
            self._counted.wait_for(lambda: self._count >= end, _TIMEOUT)
