"""A little disk held back, so that a full one does not keep the reason from being written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_NAME = ".reserve"
_BYTES = 256 << 10


@contextmanager
def reserved(directory: Path) -> Iterator[None]:
    """Hold the reserve in an attempt's directory; leaving gives it back, as `release` does."""
    descriptor = os.open(directory / _NAME, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        with suppress(OSError):  # a nicety, for which there may be no room
            os.write(descriptor, bytes(_BYTES))
    finally:
        os.close(descriptor)
    try:
        yield
    finally:
        release(directory)


def release(directory: Path) -> None:
    """Give the reserve back, also one that a killed runner left."""
    (directory / _NAME).unlink(missing_ok=True)
