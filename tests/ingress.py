"""An ingress between a client and a gateway, which answers some requests with a page of its own."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

PAGE = b"<html><body>There is no such page.</body></html>"
_HEADERS = ("Authorization", "Range", "Content-Range", "Content-Type", "Idempotency-Key")


class Ingress:
    """Passes requests on to `gateway`, but for those that `is_away` chooses.

    That takes `GET /path`, and how many of these were answered with a page already. Each of them
    is counted in `pages`.
    """

    def __init__(self, gateway: str, is_away: Callable[[str, int], bool], status: int) -> None:
        self.gateway = gateway
        self.is_away = is_away
        self.status = status
        self.pages: Counter[str] = Counter()
        self.url = ""


@contextmanager
def ingress(
    gateway: str, is_away: Callable[[str, int], bool] = lambda *_: False, status: int = 404
) -> Iterator[Ingress]:
    """Serve on a port of its own."""
    made = Ingress(gateway, is_away, status)

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = f"{self.command} {self.path.partition('?')[0]}"
            if made.is_away(request, made.pages[request]):
                made.pages[request] += 1
                self._send(made.status, {"Content-Type": "text/html"}, [PAGE])
                return
            headers = {name: self.headers[name] for name in _HEADERS if name in self.headers}
            target = made.gateway + self.path
            with httpx.stream(
                self.command, target, content=body, headers=headers, timeout=60, trust_env=False
            ) as answer:
                hop = ("connection", "transfer-encoding", "server", "date")
                passed = {k: v for k, v in answer.headers.items() if k not in hop}
                self._send(answer.status_code, passed, answer.iter_raw())

        def _send(self, status: int, headers: dict[str, str], chunks: Iterable[bytes]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(OSError, httpx.HTTPError):  # one end is gone
                for chunk in chunks if self.command != "HEAD" else ():
                    self.wfile.write(chunk)

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        made.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield made
        finally:
            server.shutdown()
