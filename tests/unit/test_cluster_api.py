"""What `doctor --cluster` says of an API server that answers, and does not reach the controller."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from kubernetes import client

from jupyter_to_job.cli.checks.cluster import api, clocks, versions
from jupyter_to_job.cli.checks.cluster.api import ClusterApi
from jupyter_to_job.cli.checks.cluster.installation import Installation
from jupyter_to_job.cli.checks.result import CheckResult, Level

from ..pretend_api_server import NAMESPACE, PretendApiServer

NO_WAY = {
    "kind": "Status",
    "message": "error trying to reach service: dial tcp 10.0.0.7:8080: i/o timeout",
}


class ShutOut(ThreadingHTTPServer):
    """Answers what the pretend API server does, but what it has to ask the controller's pod.

    `is_silent`: it does not say so in time.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.known = PretendApiServer()
        self.is_silent = False
        self.closing = threading.Event()


class _Handler(BaseHTTPRequestHandler):
    server: ShutOut

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if "/proxy/" in path:
            if self.server.is_silent:
                self.server.closing.wait(60)
            else:
                self._answer(503, NO_WAY)
        elif path in self.server.known.documents:
            self._answer(200, self.server.known.get(path))
        else:
            self._answer(200, {"items": [*self.server.known.items(path)], "metadata": {}})

    def _answer(self, status: int, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[ShutOut]:
    with ShutOut() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.closing.set()
        server.shutdown()


@pytest.mark.parametrize("check", [versions.check, clocks.check])
@pytest.mark.parametrize("is_silent", [False, True], ids=["refused", "silent"])
def test_a_controller_that_the_api_server_does_not_reach(
    server: ShutOut, monkeypatch: pytest.MonkeyPatch, check: Any, is_silent: bool
) -> None:
    server.is_silent = is_silent
    if is_silent:
        monkeypatch.setattr(api, "TIMEOUT", 0.5)
    found = look(server, check)
    assert {result.level for result in found} == {Level.OK, Level.WARNING}
    (unknown,) = (result for result in found if " is not known: " in result.message)
    assert "k8s/network/gateway" in unknown.fix
    assert "KUBECONFIG" not in unknown.fix


def look(server: ShutOut, check: Any) -> list[CheckResult]:
    """Return what a check finds through a real connection."""
    configuration = client.Configuration()
    configuration.host = f"http://127.0.0.1:{server.server_port}"
    configuration.retries = False
    door = ClusterApi(client.ApiClient(configuration))
    return [*check(door, Installation.find(door, NAMESPACE))]
