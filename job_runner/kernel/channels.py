"""Jupyter's messages on raw ZeroMQ sockets: signed, sent, and taken in batches.

jupyter_client's channels wake the loop, make a future and parse every part for each message. Here
the sockets are emptied whenever they have something, up to a bound, so that signals and timers get
their turn; of a message only what is needed is parsed, once, and its bytes are dropped before that
is done: a large message is in memory twice at most.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Any, NamedTuple

import zmq

from .connection import Connection
from .messages import unpack

_DELIMITER = b"<IDS|MSG>"
_PROTOCOL = "5.3"
_BATCH = 200
_BATCH_BYTES = 4 << 20
"""After so many messages or bytes of a channel the others have their turn, signals and timers."""
_LINGER = 200
"""Milliseconds that closing may take for a request that was sent just before."""
_RECONNECT = 10
"""Milliseconds between two tries to connect to a kernel that does not listen yet."""


class Message(NamedTuple):
    """What a kernel said: `parent` is the id of the request that it is about."""

    kind: str
    parent: str
    content: dict[str, Any]
    buffers: Sequence[bytes] = ()


class KernelChannels:
    """The channels to one kernel, in the loop that runs.

    Of a batch, `publish` gets what came on iopub or asks for input, `reply` what came on shell, and
    `pause` is called at its end. `broken` holds the exception that one of them raised, or that of a
    message which nobody signed: from then on nothing more is taken.
    """

    def __init__(
        self,
        connection: Connection,
        publish: Callable[[Message], None],
        reply: Callable[[Message], None],
        pause: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.broken: asyncio.Future[None] = self._loop.create_future()
        self._pause = pause
        digest = connection.scheme.partition("-")[2]
        self._auth = hmac.new(connection.key, digestmod=getattr(hashlib, digest))
        self._context = zmq.Context()
        # No high-water mark: a client that pauses would lose output silently.
        self._context.setsockopt(zmq.RCVHWM, 0)
        self._context.setsockopt(zmq.LINGER, 0)
        self._context.setsockopt(zmq.RECONNECT_IVL, _RECONNECT)
        kinds = {"iopub": zmq.SUB, "shell": zmq.DEALER, "control": zmq.DEALER, "stdin": zmq.DEALER}
        self._sockets = {name: self._context.socket(kind) for name, kind in kinds.items()}
        self._sockets["iopub"].subscribe(b"")
        takers = {"iopub": publish, "shell": reply, "control": _ignore, "stdin": publish}
        self._channels = [(self._sockets[name], taker) for name, taker in takers.items()]
        self._session = uuid.uuid4().hex
        for name in ("shell", "stdin"):  # a kernel asks back whoever sent the cell
            self._sockets[name].setsockopt(zmq.IDENTITY, self._session.encode())
        self._sent = 0
        self._again: asyncio.Handle | None = None
        self._last_parent = (b"", "")
        for name, socket in self._sockets.items():
            self._loop.add_reader(socket.FD, self._drain)
            socket.connect(connection.address(name))

    def send(self, channel: str, kind: str, content: dict[str, Any]) -> str:
        """Send a request and return its id."""
        self._sent += 1
        identifier = f"{self._session}_{os.getpid()}_{self._sent}"
        header = {
            "msg_id": identifier,
            "msg_type": kind,
            "session": self._session,
            "username": "job_runner",
            "date": datetime.now(timezone.utc).isoformat(),
            "version": _PROTOCOL,
        }
        parts = [json.dumps(part).encode() for part in (header, {}, {}, content)]
        self._sockets[channel].send_multipart([_DELIMITER, self._sign(parts), *parts])
        self._come_back()
        return identifier

    def close(self, *, sending: bool = False) -> None:
        """Let go of the kernel; `sending`: once the last request on control is on its way."""
        if self._context.closed:
            return
        if self._again is not None:
            self._again.cancel()
        for name, socket in self._sockets.items():
            self._loop.remove_reader(socket.FD)
            socket.close(linger=_LINGER if sending and name == "control" else 0)
        self._context.term()
        self.broken.cancel()

    def _come_back(self) -> None:
        """Look at the sockets once more, soon.

        Their descriptors tell of new events only once, and whatever is done with a socket may take
        notice of one.
        """
        if self._again is None:
            self._again = self._loop.call_soon(self._drain)

    def _drain(self) -> None:
        """Take what has come, up to the bounds."""
        if self._again is not None:
            self._again.cancel()
            self._again = None
        if self.broken.done():
            return
        try:
            if not self._take_batch():
                self._come_back()
            self._pause()
        except Exception as error:  # whoever runs the kernel ends with it
            self.broken.set_exception(error)

    def _take_batch(self) -> bool:
        """Return whether the sockets are empty."""
        is_empty = True
        for socket, taker in self._channels:
            # To each its own: a flood on iopub keeps no reply waiting.
            left, room = _BATCH, _BATCH_BYTES
            while left > 0 and room > 0:
                try:
                    frames = socket.recv_multipart(zmq.NOBLOCK)
                except zmq.Again:
                    break
                left -= 1
                room -= sum(map(len, frames))
                taker(self._read(frames))
            else:
                is_empty = False
        return is_empty

    def _read(self, frames: list[bytes]) -> Message:
        """Check and parse a message, and empty `frames`. Raises ValueError."""
        del frames[: frames.index(_DELIMITER) + 1]
        signature, parts = frames.pop(0), frames[:4]
        if len(parts) < 4 or not hmac.compare_digest(signature, self._sign(parts)):
            raise ValueError("the kernel sent a message that is not signed as agreed")
        del parts
        header = unpack(frames, 0)
        if frames[0] != self._last_parent[0]:
            # Most messages are about the same request as the one before.
            raw = frames[0]
            parent = unpack(frames, 0).get("msg_id")
            self._last_parent = (raw, parent if isinstance(parent, str) else "")
        else:
            del frames[0]
        del frames[0]  # metadata: nothing in a notebook comes from there
        content = unpack(frames, 0)
        return Message(str(header.get("msg_type")), self._last_parent[1], content, frames)

    def _sign(self, parts: list[bytes]) -> bytes:
        signing = self._auth.copy()
        for part in parts:
            signing.update(part)
        return signing.hexdigest().encode()


def _ignore(_message: Message) -> None:
    """Control's replies say nothing that is not seen otherwise."""
