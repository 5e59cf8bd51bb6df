"""The channels of a kernel as raw ZeroMQ sockets: messages are signed, sent, and read in batches.

jupyter_client's channels wake the loop, make a future and parse every part for each message. Here
the sockets are emptied whenever they have something. A batch is bounded, so that signals and timers
get their turn. Only the needed parts of a message are parsed, once, and their bytes are dropped
before that: a large message is in memory twice at most.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, NamedTuple

import zmq

from .messages import unpack

_DELIMITER = b"<IDS|MSG>"
_PROTOCOL = "5.3"
_BATCH_MESSAGES = 200
_BATCH_BYTES = 4 << 20
"""After so many messages or bytes of a channel, other channels, signals and timers get a turn."""
_LINGER_MS = 200
"""Time that closing may take to send the last request."""
_RECONNECT_INTERVAL_MS = 10
"""Time between two tries to connect to a kernel that does not listen yet."""


class Message(NamedTuple):
    """A message of a kernel; `parent` is the id of the request that caused it."""

    kind: str
    parent: str
    content: dict[str, Any]
    buffers: Sequence[bytes] = ()


class KernelChannels:
    """The channels to one kernel, in the running event loop.

    `connection` is what jupyter_client's `get_connection_info` returns. Of each batch,
    `on_published` gets the messages of iopub and stdin, `on_reply` those of shell, and
    `on_batch_end` is called at its end. `error` gets the exception that one of them raised, or a
    ValueError for a message with a wrong signature; after that no message is read.
    """

    def __init__(
        self,
        connection: Mapping[str, Any],
        on_published: Callable[[Message], None],
        on_reply: Callable[[Message], None],
        on_batch_end: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.error: asyncio.Future[None] = self._loop.create_future()
        self._on_batch_end = on_batch_end
        digest = connection["signature_scheme"].partition("-")[2]
        self._auth = hmac.new(connection["key"], digestmod=getattr(hashlib, digest))
        self._context = zmq.Context()
        # No high-water mark: a client that pauses would lose output silently.
        self._context.setsockopt(zmq.RCVHWM, 0)
        self._context.setsockopt(zmq.LINGER, 0)
        self._context.setsockopt(zmq.RECONNECT_IVL, _RECONNECT_INTERVAL_MS)
        kinds = {"iopub": zmq.SUB, "shell": zmq.DEALER, "control": zmq.DEALER, "stdin": zmq.DEALER}
        self._sockets = {name: self._context.socket(kind) for name, kind in kinds.items()}
        self._sockets["iopub"].subscribe(b"")
        handlers = {
            "iopub": on_published,
            "shell": on_reply,
            "control": _ignore,
            "stdin": on_published,
        }
        self._handlers = [(self._sockets[name], handler) for name, handler in handlers.items()]
        self._session = uuid.uuid4().hex
        for name in ("shell", "stdin"):  # a kernel sends `input_request` to the cell's sender
            self._sockets[name].setsockopt(zmq.IDENTITY, self._session.encode())
        self._sent_count = 0
        self._next_drain: asyncio.Handle | None = None
        self._last_parent = (b"", "")
        for name, socket in self._sockets.items():
            self._loop.add_reader(socket.FD, self._drain)
            socket.connect(_address(connection, name))

    def send(self, channel: str, kind: str, content: dict[str, Any]) -> str:
        """Send a request and return its id."""
        self._sent_count += 1
        identifier = f"{self._session}_{os.getpid()}_{self._sent_count}"
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
        self._schedule_drain()
        return identifier

    def close(self, *, sending: bool = False) -> None:
        """Close the sockets; with `sending` after the last request on control was sent."""
        if self._context.closed:
            return
        if self._next_drain is not None:
            self._next_drain.cancel()
        for name, socket in self._sockets.items():
            self._loop.remove_reader(socket.FD)
            socket.close(linger=_LINGER_MS if sending and name == "control" else 0)
        self._context.term()
        self.error.cancel()

    def _schedule_drain(self) -> None:
        """Read the sockets again in the next turn of the loop.

        A socket's descriptor reports a new event only once, and every call on the socket may
        consume that report.
        """
        if self._next_drain is None:
            self._next_drain = self._loop.call_soon(self._drain)

    def _drain(self) -> None:
        """Handle the messages that have come, up to the bounds."""
        if self._next_drain is not None:
            self._next_drain.cancel()
            self._next_drain = None
        if self.error.done():
            return
        try:
            if not self._read_batch():
                self._schedule_drain()
            self._on_batch_end()
        except Exception as error:  # the engine, which waits for `error`, raises it
            self.error.set_exception(error)

    def _read_batch(self) -> bool:
        """Return whether the sockets are empty."""
        is_empty = True
        for socket, handler in self._handlers:
            # Each channel has its own bounds: a flood on iopub keeps no reply waiting.
            messages_left, bytes_left = _BATCH_MESSAGES, _BATCH_BYTES
            while messages_left > 0 and bytes_left > 0:
                try:
                    frames = socket.recv_multipart(zmq.NOBLOCK)
                except zmq.Again:
                    break
                messages_left -= 1
                bytes_left -= sum(map(len, frames))
                handler(self._parse(frames))
            else:
                is_empty = False
        return is_empty

    def _parse(self, frames: list[bytes]) -> Message:
        """Check and parse a message, and empty `frames`. Raises ValueError."""
        del frames[: frames.index(_DELIMITER) + 1]
        signature, parts = frames.pop(0), frames[:4]
        if len(parts) < 4 or not hmac.compare_digest(signature, self._sign(parts)):
            raise ValueError("the kernel sent a message that is not signed as agreed")
        del parts
        header = unpack(frames, 0)
        if frames[0] != self._last_parent[0]:
            # Most messages have the same parent as the message before.
            raw = frames[0]
            parent = unpack(frames, 0).get("msg_id")
            self._last_parent = (raw, parent if isinstance(parent, str) else "")
        else:
            del frames[0]
        del frames[0]  # metadata: no part of a notebook comes from it
        content = unpack(frames, 0)
        return Message(str(header.get("msg_type")), self._last_parent[1], content, frames)

    def _sign(self, parts: list[bytes]) -> bytes:
        signature = self._auth.copy()
        for part in parts:
            signature.update(part)
        return signature.hexdigest().encode()


def _address(connection: Mapping[str, Any], channel: str) -> str:
    """Return the address of a channel. For ipc, `ip` is the beginning of the sockets' paths."""
    separator = "-" if connection["transport"] == "ipc" else ":"
    port = connection[f"{channel}_port"]
    return f"{connection['transport']}://{connection['ip']}{separator}{port}"


def _ignore(_message: Message) -> None:
    """Drop a reply on control: its effect shows elsewhere."""
