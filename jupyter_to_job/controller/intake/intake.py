"""What the gateway takes in: how much of a body, from whom, how fast, and where it goes meanwhile.

A body is read only after its caller is known and the route is known to take that much. It goes to
a file in pieces, so the memory of this process does not depend on what others send.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import MutableMapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from weakref import WeakValueDictionary

from job_runner.protocol import documents
from job_runner.protocol.units import format_bytes

from ...domain.errors import NotFound, TooLarge
from ...exchange.pieces import writing
from ...exchange.uploads import Upload
from ..callers.identity import AgentPod, DevPod, Identity
from .budgets import Budgets

FOLDER = ".incoming"
MAX_PIECE = 64 << 20
"""Bytes of an append to a journal or artifact; agents send a few MiB at a time."""
MAX_SUBMISSION = 4 << 20
"""Bytes of a submission: its inputs are named with their digests."""
MAX_SMALL = 64 << 10
"""Bytes of the body of any other request."""
MAX_WITHOUT_ROOM = 8 << 20
"""Bytes of an owner under way up to which other bodies than blobs need no room: a delivery is
reported, and what frees room is asked for, also where there is none."""
ROOM_CHECK = 16 << 20
"""Bytes of a blob after which the room on the disk is checked again."""
MAX_THREADS = 4
"""Threads of `Intake.bulk` that the requests of one owner hold, at most."""


@dataclass(frozen=True)
class Intake:
    """Where bodies go, and how long they may take.

    `bulk` runs what may take long: writing bodies, and handling what is large. `idle_timeout` is
    how many seconds may pass without a byte, `timeout` how many a whole body may take.
    """

    exchange: Path
    budgets: Budgets
    bulk: ThreadPoolExecutor
    idle_timeout: float = 30.0
    timeout: float = 600.0
    _turns: MutableMapping[str, asyncio.Semaphore] = field(
        default_factory=WeakValueDictionary, init=False
    )
    """By owner, while a request of theirs is handled or waits."""

    def turn(self, caller: Identity) -> contextlib.AbstractAsyncContextManager[None]:
        """Return what a caller's request holds while it is handled in `bulk`.

        Those of one owner leave threads for everybody else: they wait without one. Agents and
        couriers need no turn.
        """
        if not isinstance(caller, DevPod):
            return contextlib.nullcontext()
        return self._turns.setdefault(caller.owner, asyncio.Semaphore(MAX_THREADS))

    def prepare(self) -> None:
        """Remove what a killed process was receiving."""
        shutil.rmtree(self.exchange / FOLDER, ignore_errors=True)

    def open(self, caller: Identity, method: str, path: str, length: int | None) -> IncomingBody:
        """Return the body of a request, to be filled. `length` is None where it is not declared.

        Raises TooLarge; NotFound for a route that the caller does not have; StorageFull where there
        is no room for what a dev pod wants to send. Reads the disk.
        """
        if not isinstance(caller, DevPod) and not path.startswith("exchange/"):
            raise NotFound(f"There is no {method} {path}.")
        limit = body_limit(caller, method, path, self.budgets.caps.inputs)
        if length is not None and length > limit:
            raise _too_large(limit)
        owner = caller.owner if isinstance(caller, DevPod) else None
        is_blob = method == "PUT" and path.startswith("blobs/")
        body = IncomingBody(self, limit, owner, is_blob=is_blob)
        body.require_room(length or 0)
        return body


class IncomingBody:
    """The body of one request as it comes in; it counts for the budget of its `owner`."""

    def __init__(self, intake: Intake, limit: int, owner: str | None, *, is_blob: bool) -> None:
        self.upload = Upload(intake.exchange / FOLDER)
        self._budgets = intake.budgets
        self._limit = limit
        self._owner = owner
        self._is_blob = is_blob
        self._checked = 0
        self._is_kept = False

    def require_room(self, length: int) -> None:
        """Raise StorageFull where there is no room for `length` more bytes of the owner."""
        if self._owner is None:
            return
        is_small = self.upload.size + length <= MAX_SMALL
        coming = self._budgets.incoming(self._owner) + length
        if self._is_blob or (not is_small and coming > MAX_WITHOUT_ROOM):
            self._budgets.require_room(self._owner, length)

    def write(self, chunk: bytes) -> None:
        """Take the next bytes. Raises TooLarge, StorageFull and Unavailable."""
        if self.upload.size + len(chunk) > self._limit:
            raise _too_large(self._limit)
        if self._owner is not None:
            self._budgets.receive(self._owner, len(chunk))  # also if it cannot be written
        with writing():
            self.upload.write(chunk)
        if not self._is_blob or self.upload.size - self._checked >= ROOM_CHECK:
            self._checked = self.upload.size
            self.require_room(0)

    def keep(self) -> None:
        """Let the bytes of a blob go on counting for their owner: they are in the exchange now."""
        self._is_kept = self._is_blob

    def close(self) -> None:
        """Free memory and disk; call it again as often as you like."""
        self.upload.close()
        if self._owner is not None:
            self._budgets.received(self._owner, self.upload.size, is_kept=self._is_kept)
        self._owner = None


def body_limit(caller: Identity, method: str, path: str, max_blob: int) -> int:
    """Return how many bytes the body of a caller's request may have."""
    kind, _, tail = path.partition("/")
    if kind == "blobs" and method == "PUT":
        return max_blob
    if kind == "exchange":
        is_piece = "/journal/" in tail or "/artifacts/" in tail
        is_agent = isinstance(caller, AgentPod)
        return MAX_PIECE if is_agent and is_piece else documents.MAX_SENT_BYTES
    if method == "POST" and (path in ("jobs", "sweeps", "preflight") or path.endswith("/rerun")):
        return MAX_SUBMISSION
    return MAX_SMALL


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"The body is over {format_bytes(limit)}.", "Send less.")
