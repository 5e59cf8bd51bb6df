"""Real servers that receive notifications: over HTTP with answers of choice, and over SMTP."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from .ports import free_port


@dataclass(frozen=True)
class Posted:
    """One request: what stands in it, and the status that it was answered with."""

    path: str
    headers: dict[str, str]
    body: bytes
    status: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def is_signed_with(self, key: bytes) -> bool:
        """Check the signature as docs/notifications.md tells receivers to."""
        head = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}."
        digest = hmac.new(key, head.encode() + self.body, hashlib.sha256).digest()
        assert abs(time.time() - int(self.headers["webhook-timestamp"])) < 300
        return self.headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"


@dataclass
class WebReceiver:
    """Answers with `statuses` in turn, and from then on with `status`; first waits for `gate`."""

    port: int
    statuses: list[int] = field(default_factory=list)
    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    gate: threading.Event = field(default_factory=threading.Event)
    posted: list[Posted] = field(default_factory=list)

    def url(self, path: str = "/jobs") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def taken(self) -> list[Posted]:
        """The requests that were answered with a success."""
        return [posted for posted in self.posted if posted.status < 300]


@contextmanager
def receiving_web() -> Iterator[WebReceiver]:
    """Receive requests on a port of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = receiver.statuses.pop(0) if receiver.statuses else receiver.status
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.posted.append(Posted(self.path, headers, body, status))
            receiver.gate.wait()
            self.send_response(status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver = WebReceiver(server.server_address[1])
    receiver.gate.set()
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield receiver
    finally:
        receiver.gate.set()
        server.shutdown()
        server.server_close()


@dataclass
class MailReceiver:
    """Answers with `replies` in turn, and then takes every mail into `mails`."""

    port: int
    replies: list[str] = field(default_factory=list)
    mails: list[Message] = field(default_factory=list)

    async def handle_DATA(self, _: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        if self.replies:
            return self.replies.pop(0)
        assert isinstance(envelope.content, bytes)
        self.mails.append(message_from_bytes(envelope.content, policy=default))
        return "250 OK"


@contextmanager
def receiving_mail(**options: Any) -> Iterator[MailReceiver]:
    """Receive mail on a port of its own."""
    receiver = MailReceiver(free_port())
    controller = Controller(receiver, hostname="127.0.0.1", port=receiver.port, **options)
    controller.start()
    try:
        yield receiver
    finally:
        controller.stop()
