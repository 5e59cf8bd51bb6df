"""Whether the controller can do its work now, as its probes ask.

The answers are for everybody who reaches the port: they name a check and what kind of thing is
wrong, and no namespace, path, owner or job. The log has these.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from job_runner.protocol.documents import encode
from job_runner.protocol.result.result import NO_SPACE

from .metrics import Metrics

OK = "ok"
STARTING = "starting"
FULL = "is full"
PROBE_FILE = ".writable"
TIMEOUT = 1.0
"""Seconds that a check may take: the kubelet waits for so long, too."""
Check = Callable[[], Awaitable[str]]
"""Returns `OK`, or what is wrong."""


class Readiness:
    """The checks of this process by name. One that was only announced is still `STARTING`."""

    def __init__(self, metrics: Metrics, *names: str) -> None:
        self._metrics = metrics
        self._checks: dict[str, Check] = dict.fromkeys(names, _starting)

    def set(self, name: str, check: Check) -> None:
        """Ask `check` from now on."""
        self._checks[name] = check

    async def answer(self) -> tuple[int, dict[str, object]]:
        """Return a status of HTTP, 200 or 503, and a document with the word of each check.

        A full exchange is served: users may read, and delete jobs.
        """
        words = await asyncio.gather(*(check() for check in self._checks.values()))
        is_ready = all(word in (OK, FULL) for word in words)
        checks = dict(zip(self._checks, words, strict=True))
        for name, word in checks.items():
            self._metrics.ready.labels(name).set(word == OK)
        document: dict[str, object] = {"status": OK if is_ready else "unready", "checks": checks}
        return (200 if is_ready else 503), document


async def passed() -> str:
    """Check what is done for good."""
    return OK


async def _starting() -> str:
    return STARTING


class ExchangeCheck:
    """Tells whether the exchange can be written to, by writing a file there.

    A volume may hang for ever: then its thread does, and nothing else.
    """

    def __init__(self, root: Path) -> None:
        self._file = root / PROBE_FILE
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="readiness")
        self._writing: Future[str] | None = None

    async def __call__(self) -> str:
        """Return `OK`, or what is wrong."""
        if self._writing is None or self._writing.done():
            self._writing = self._pool.submit(self._write)
        with contextlib.suppress(asyncio.TimeoutError):
            return await asyncio.wait_for(_result_of(self._writing), TIMEOUT)
        return "does not answer"

    def _write(self) -> str:
        try:
            self._file.write_bytes(encode({"pid": os.getpid()}))
        except OSError as error:
            if error.errno in NO_SPACE:
                return FULL
            return f"cannot be written to: {os.strerror(error.errno or 0)}"
        return OK


async def _result_of(writing: Future[str]) -> str:
    """Wait for a thread, which goes on if nobody waits any more."""
    return await asyncio.shield(asyncio.wrap_future(writing))


class Watch(Protocol):
    """What this needs of an informer."""

    synced: asyncio.Event
    answered: asyncio.Event


def watches_check(watches: Callable[[], Collection[Watch]]) -> Check:
    """Return the check of the watches of Jobs and pods.

    Each has to have been answered. One that is refused, in a namespace without our Role, takes
    nothing from the others: only if none works the controller can do nothing.
    """

    async def check() -> str:
        all_watches = watches()
        waiting = [watch for watch in all_watches if not watch.answered.is_set()]
        if waiting:
            return f"{len(waiting)} of {len(all_watches)} have not been read yet"
        if not any(watch.synced.is_set() for watch in all_watches):
            return f"none of {len(all_watches)} may be read"
        return OK

    return check
