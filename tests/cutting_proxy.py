"""A proxy between a client and a gateway that cuts connections, and counts what passed."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

_CHUNK = 64 << 10


class CuttingProxy:
    """Passes bytes on until a limit is used up; then it cuts that connection, and clears the limit.

    `upstream` is the URL of the gateway, which a test may change. `sent` and `received` are the
    bytes that passed, as the client sees them. While `gate` is clear nothing passes to the gateway.
    """

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream
        self.sent = self.received = 0
        self.cuts = 0
        self.gate = threading.Event()
        self.gate.set()
        self._cut_sent_at: int | None = None
        self._cut_received_at: int | None = None
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_after_sent(self, count: int) -> None:
        """Cut a connection when so many more bytes have gone to the gateway."""
        with self._lock:
            self._cut_sent_at = self.sent + count

    def cut_after_received(self, count: int) -> None:
        """Cut a connection when so many more bytes have come from the gateway."""
        with self._lock:
            self._cut_received_at = self.received + count

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            parts = urlsplit(self.upstream)
            try:
                gateway = socket.create_connection((parts.hostname, parts.port or 80), timeout=5)
            except OSError:  # it is away
                client.close()
                continue
            gateway.settimeout(None)
            for source, target, is_sent in ((client, gateway, True), (gateway, client, False)):
                threading.Thread(
                    target=self._pass_on, args=(source, target, is_sent), daemon=True
                ).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, is_sent: bool) -> None:
        with contextlib.suppress(OSError):
            while chunk := source.recv(_CHUNK):
                if is_sent:
                    self.gate.wait()
                if self._count(len(chunk), is_sent):
                    break
                target.sendall(chunk)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _count(self, size: int, is_sent: bool) -> bool:
        """Count bytes, and tell whether the connection is to be cut before them."""
        with self._lock:
            if is_sent:
                self.sent += size
                if self._cut_sent_at is None or self.sent < self._cut_sent_at:
                    return False
                self._cut_sent_at = None
            else:
                self.received += size
                if self._cut_received_at is None or self.received < self._cut_received_at:
                    return False
                self._cut_received_at = None
            self.cuts += 1
            return True


@contextmanager
def cutting_proxy(upstream: str) -> Iterator[CuttingProxy]:
    """Yield a proxy in front of a gateway."""
    proxy = CuttingProxy(upstream)
    try:
        yield proxy
    finally:
        proxy.close()
