"""`GET events`: the changes of a dev pod's jobs as server-sent events."""

from __future__ import annotations

import asyncio
import time

from tornado.iostream import StreamClosedError

from ..domain.errors import JobsError, NotFound, Unavailable
from .callers.identity import DevPod, Identity
from .feed.event_queue import EventQueue
from .handler import GatewayHandler

HEARTBEAT_INTERVAL = 1.0
"""Seconds between two comments on an idle stream, by which both sides notice a dead peer."""
VALIDITY_INTERVAL = 10.0
"""Seconds between two times that the caller is authenticated again: a stream ends with its pod."""
VALIDITY_TIMEOUT = 5.0
"""Seconds for that: a client that hears nothing for 30 s gives up."""
_HEARTBEAT = b": \n\n"


class EventsHandler(GatewayHandler):
    """Server-sent events, a Job each: first the unfinished and undelivered ones, then changes."""

    async def get(self) -> None:
        """Stream until the client disconnects or does not read, or its pod is gone."""
        self.body_complete()
        try:
            caller = _dev_pod(self.caller)
            names = self.get_query_argument("name", "")
            jobs = names.split(",") if names else None
            with self.context.feed.subscribe(caller.owner, caller.origin, jobs) as events:
                await self._stream(caller, events)
        except JobsError as error:
            self.refuse(error)
        except StreamClosedError:
            pass  # the client disconnected, as most streams end

    async def _stream(self, caller: DevPod, events: EventQueue) -> None:
        """Send events and heartbeats. Raises StreamClosedError."""
        self.set_header("Content-Type", "text/event-stream")
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Accel-Buffering", "no")  # nginx would keep events back
        self.limit_send_buffer()
        chunk, checked = _HEARTBEAT, time.monotonic()
        while True:
            self.write(chunk)
            await self.flush()
            chunk = await events.take(HEARTBEAT_INTERVAL) or _HEARTBEAT
            if time.monotonic() - checked > VALIDITY_INTERVAL:
                if not await self._is_valid(caller):
                    return
                checked = time.monotonic()

    async def _is_valid(self, caller: DevPod) -> bool:
        """Tell whether the caller's pod, and so its token, is still accepted for the same owner."""
        try:
            current = await asyncio.wait_for(self.authenticate(), VALIDITY_TIMEOUT)
            return _dev_pod(current).owner == caller.owner
        except (asyncio.TimeoutError, Unavailable):  # nobody knows now: it is tried again
            return True
        except JobsError:
            return False


def _dev_pod(identity: Identity | None) -> DevPod:
    """Return the caller, who must be a dev pod. Raises NotFound for an agent."""
    if not isinstance(identity, DevPod):
        raise NotFound("There are no events for agents.")
    return identity
