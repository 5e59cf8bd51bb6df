"""The lock that makes sure that one controller alone works on an exchange.

The Deployment has one replica and is recreated, not rolled. A second one by mistake, or a pod that
does not end while its node is away, must not write beside the first.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
from collections.abc import AsyncIterator
from pathlib import Path

LOCK = ".controller"
RETRY_INTERVAL = 1.0
"""Seconds between two tries."""
_log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def only_writer(root: Path) -> AsyncIterator[None]:
    """Wait until no other controller works on the exchange at `root`, and keep others out.

    The lock ends with the process, however that ends.
    """
    with (root / LOCK).open("a") as file:
        is_waiting = False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not is_waiting:
                    _log.warning("Another controller works on %s: this one waits.", root)
                is_waiting = True
                await asyncio.sleep(RETRY_INTERVAL)
        if is_waiting:
            _log.info("The other controller has ended.")
        yield
