"""The process that tells the administrator's hooks of jobs, beside the controller."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ..notifications.process import NotifierProcess

LOCK = ".notifier"
_CHECK_INTERVAL = 2.0


async def keep_notifier(exchange: Path) -> None:
    """Keep a notifier at work until the task is cancelled."""
    notifier = NotifierProcess(exchange, exchange / LOCK, serves_all=True)
    try:
        while True:
            await asyncio.to_thread(notifier.keep)
            await asyncio.sleep(_CHECK_INTERVAL)
    finally:
        notifier.stop()
