"""Calls whose results are shared and remembered, so that callers cannot multiply them."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from ...domain.errors import Refused, Unavailable

REFUSED_TTL = 10.0
"""Seconds for which a refusal counts."""
MAX_CALLS = 8
"""Calls at a time."""
MAX_WAITING = 256
"""Calls that may wait for their turn; the next one is answered with Unavailable at once."""
MAX_WAIT = 10.0
"""Seconds for which a caller waits."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
Clock = Callable[[], float]


class BoundedCache(Generic[_Key, _Value]):
    """Keeps values for `ttl` seconds, at most `max_entries`; the oldest goes first."""

    def __init__(self, max_entries: int, ttl: float, clock: Clock) -> None:
        self._max_entries = max_entries
        self._ttl = ttl
        self._clock = clock
        self._entries: OrderedDict[_Key, tuple[float, _Value]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: _Key) -> _Value | None:
        """Return the value of a key, None if there is none or it is too old."""
        entry = self._entries.get(key)
        return entry[1] if entry is not None and entry[0] > self._clock() else None

    def put(self, key: _Key, value: _Value) -> None:
        """Keep a value from now on. What is too old is dropped here."""
        moment = self._clock()
        self._entries.pop(key, None)
        self._entries[key] = moment + self._ttl, value
        while (
            len(self._entries) > self._max_entries
            or next(iter(self._entries.values()))[0] <= moment
        ):
            self._entries.popitem(last=False)


class SharedCalls(Generic[_Key, _Value]):
    """Makes one call for each key, however many ask at a time.

    A value counts `ttl` seconds and a refusal `REFUSED_TTL`; other errors are not remembered. Each
    of the two has a cache of `max_entries`: a flood of refused keys drops no value.
    """

    def __init__(self, ttl: float, max_entries: int = 4096, clock: Clock = time.monotonic) -> None:
        self._values: BoundedCache[_Key, _Value] = BoundedCache(max_entries, ttl, clock)
        # Message and hint: an error has a traceback, and keeps all that the call knew.
        self._refusals: BoundedCache[_Key, tuple[str, str]]
        self._refusals = BoundedCache(max_entries, REFUSED_TTL, clock)
        self._pending: dict[_Key, asyncio.Task[_Value]] = {}
        self._turns = asyncio.Semaphore(MAX_CALLS)

    def known(self, key: _Key) -> _Value | None:
        """Return the value that is remembered for a key. Raises Refused if a refusal is."""
        refusal = self._refusals.get(key)
        if refusal is not None:
            raise Refused(*refusal)
        return self._values.get(key)

    async def get(self, key: _Key, call: Callable[[], Awaitable[_Value]]) -> _Value:
        """Return the value of a key, from memory or by a call.

        Raises what `call` raises, and Unavailable if there are too many calls or it takes too long.
        """
        value = self.known(key)
        if value is not None:
            return value
        task = self._pending.get(key)
        if task is None:
            if len(self._pending) >= MAX_CALLS + MAX_WAITING:
                raise Unavailable("Too many new callers at a time.", "Try again in a moment.")
            task = self._pending[key] = asyncio.create_task(self._call(key, call))
            task.add_done_callback(lambda finished: self._forget(key, finished))
        try:
            # Others may wait for the same call: it goes on when one of them gives up.
            return await asyncio.wait_for(asyncio.shield(task), MAX_WAIT)
        except asyncio.TimeoutError as error:
            raise Unavailable(
                "Kubernetes does not answer in time.", "Try again in a moment."
            ) from error

    async def _call(self, key: _Key, call: Callable[[], Awaitable[_Value]]) -> _Value:
        async with self._turns:
            try:
                value = await call()
            except Refused as error:
                self._refusals.put(key, (error.message, error.hint))
                raise
        self._values.put(key, value)
        return value

    def _forget(self, key: _Key, task: asyncio.Task[_Value]) -> None:
        del self._pending[key]
        if not task.cancelled():
            task.exception()  # nobody may be left who waits for it
