"""What the controller's process says of its exchange and of its streams, as numbers."""

from __future__ import annotations

import base64
import json
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.exchange.disk_use import bytes_on_disk

from ..processes import until
from ..unit import exchanges
from ..unit.test_operations import KUBECONFIG
from .test_controller_process import Controller

AUDIENCE = "jupyter-to-job"
NAMES = {"name": "dev", "namespace": "team", "uid": "u-1"}
POD = {
    "metadata": {**NAMES, "annotations": {"hub.jupyter.org/username": "ada"}},
    "spec": {"containers": [{"name": "notebook", "image": "image:1"}]},
}
MIB = 1 << 20


def token_of_pod() -> str:
    """Return what looks like a token of the dev pod; nobody here verifies it."""
    claims = {"aud": [AUDIENCE], "kubernetes.io": {"namespace": "team", "pod": {"name": "dev"}}}
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode()}.e30"


class _ApiServer(BaseHTTPRequestHandler):
    """Knows one dev pod, and whose its tokens are."""

    def do_POST(self) -> None:
        size = int(self.headers["Content-Length"])
        spec = json.loads(self.rfile.read(size))["spec"]
        extra = {f"authentication.kubernetes.io/pod-{k}": [NAMES[k]] for k in ("name", "uid")}
        user = {"username": "system:serviceaccount:team:default", "extra": extra}
        status = {"authenticated": True, "audiences": [AUDIENCE], "user": user}
        self._answer(201, {"spec": spec, "status": status})

    def do_GET(self) -> None:
        is_pod = self.path.partition("?")[0] == "/api/v1/namespaces/team/pods/dev"
        refusal = {"kind": "Status", "message": "no right"}
        self._answer(200, POD) if is_pod else self._answer(403, refusal)

    def _answer(self, status: int, document: object) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """How to reach an API server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _ApiServer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        path = tmp_path / "kubeconfig"
        path.write_text(KUBECONFIG.format(server.server_address[1]))
        yield path
        server.shutdown()


@pytest.fixture
def controller(exchange: Path, tmp_path: Path, kubeconfig: Path) -> Iterator[Controller]:
    """A controller whose exchange has a job with a file of three megabytes."""
    kept = FileExchange(exchange)
    exchanges.add(kept, "train-abcdefgh", owner="team/ada")
    (kept.directory("train-abcdefgh") / "inputs" / "more.bin").write_bytes(b"x" * 3 * MIB)
    made = Controller(exchange, tmp_path, kubeconfig, DISK_RESERVE="5Mi")
    made.unlock()
    try:
        until(lambda: made.checks().get("gateway") == "ok", "it serves")
        yield made
    finally:
        made.process.kill()
        made.process.wait()


def value(controller: Controller, name: str) -> float | None:
    """Return the value of a metric without labels; None before there is one."""
    found = re.search(rf"^jupyter_to_job_{name} (\S+)$", controller.metrics(), re.MULTILINE)
    return None if found is None else float(found[1])


def test_bytes_of_the_exchange(controller: Controller, exchange: Path) -> None:
    used = until(lambda: value(controller, "exchange_used_bytes"), "it has measured")
    assert used == bytes_on_disk(exchange / "train-abcdefgh") > 3 * MIB
    until(lambda: value(controller, "exchange_size_bytes"), "it has asked the disk")
    disk = shutil.disk_usage(exchange)
    assert value(controller, "exchange_size_bytes") == disk.total
    free = value(controller, "exchange_free_bytes")
    assert free is not None
    assert 0 < free < disk.total
    assert abs(free - disk.free) < disk.total / 50  # others write, too
    assert value(controller, "exchange_reserve_bytes") == 5 * MIB


def test_open_streams(controller: Controller) -> None:
    headers = {"Authorization": f"Bearer {token_of_pod()}"}
    url = f"http://127.0.0.1:{controller.gateway}/api/"
    assert value(controller, "feed_clients") == 0
    with closing(httpx.Client(base_url=url, headers=headers, timeout=30)) as client:
        with ExitStack() as streams:
            for count in (1, 2, 3):
                answer = streams.enter_context(client.stream("GET", "events"))
                assert answer.status_code == 200, answer.read()
                until(lambda: value(controller, "feed_clients") == count, f"{count} are open")  # noqa: B023
        until(lambda: value(controller, "feed_clients") == 0, "none is open")
