"""The controller's process: alive while it waits, ready when it can work, and its end."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest

from jupyter_to_job.controller.one_writer import LOCK

from ..ports import free_port
from ..processes import until
from ..unit.test_operations import KUBECONFIG

IDLE_CLIENTS = 1100
SOFT_LIMIT = 1024
"""Open files that containers have without asking for more."""
MAX_LOG = 20_000
"""Bytes that the controller logs in these tests, at most."""


class Controller:
    """A controller whose exchange another one has until `unlock`.

    Without a `kubeconfig` its API server is away. `open_files` are its soft and hard limit.
    """

    def __init__(
        self,
        exchange: Path,
        folder: Path,
        kubeconfig: Path | None = None,
        open_files: tuple[int, int] | None = None,
        **settings: str,
    ) -> None:
        exchange.mkdir(exist_ok=True)
        self._lock = (exchange / LOCK).open("a")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.gateway, self.operations = free_port(), free_port()
        if kubeconfig is None:
            kubeconfig = folder / "kubeconfig"
            kubeconfig.write_text(KUBECONFIG.format(free_port()))
        command = [sys.executable, "-m", "jupyter_to_job.controller", "--port", str(self.gateway)]
        command += ["--operations-port", str(self.operations), "--kubeconfig", str(kubeconfig)]
        variables = {
            "EXCHANGE": str(exchange),
            "AGENT_IMAGE": "agent:1",
            "GATEWAY_URL": "http://gateway",
            "NAMESPACES": "team",
            "LOG_FORMAT": "json",
            **settings,
        }
        env = {f"JUPYTER_TO_JOB_{name}": value for name, value in variables.items()}
        self.log = folder / "log"
        limit = open_files and partial(resource.setrlimit, resource.RLIMIT_NOFILE, open_files)
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, env={**os.environ, **env}, stderr=log, preexec_fn=limit
            )

    def unlock(self) -> None:
        self._lock.close()

    def ask(self, path: str, port: int | None = None) -> httpx.Response | None:
        try:
            return httpx.get(f"http://127.0.0.1:{port or self.operations}{path}", timeout=60)
        except httpx.TransportError:
            return None

    def checks(self, port: int | None = None) -> dict[str, str]:
        answer = self.ask("/readyz", port)
        return {} if answer is None else answer.json()["checks"]

    def metrics(self) -> str:
        answer = self.ask("/metrics")
        return "" if answer is None else answer.text

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


@contextmanager
def running(
    exchange: Path, folder: Path, open_files: tuple[int, int] | None = None
) -> Iterator[Controller]:
    made = Controller(exchange, folder, open_files=open_files)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait()
        made.unlock()


@pytest.fixture
def controller(exchange: Path, tmp_path: Path) -> Iterator[Controller]:
    with running(exchange, tmp_path) as made:
        yield made


@pytest.fixture
def room_for_clients() -> Iterator[int]:
    """Let this process have as many files open as it may; yield how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def idle_clients(port: int) -> Iterator[list[socket.socket]]:
    """Open more connections than a process may have by default, and send nothing."""
    with ExitStack() as stack:
        address = ("127.0.0.1", port)
        yield [
            stack.enter_context(socket.create_connection(address, timeout=30))
            for _ in range(IDLE_CLIENTS)
        ]


def serve(controller: Controller) -> None:
    controller.unlock()
    until(lambda: controller.checks().get("gateway") == "ok", "it serves")


def test_it_is_alive_while_another_one_works(controller: Controller) -> None:
    alive = until(lambda: controller.ask("/healthz"), "it is alive")
    assert alive.status_code == 200
    assert controller.checks()["lock"] == "starting"
    assert controller.ask("/healthz", controller.gateway) is None
    assert controller.end() == 0


def test_it_says_what_it_lacks(controller: Controller) -> None:
    until(lambda: controller.ask("/healthz"), "it is alive")
    controller.unlock()
    until(lambda: controller.checks().get("gateway") == "ok", "it serves")
    word = {
        "lock": "ok",
        "exchange": "ok",  # it may have been late to answer before
        "watches": "2 of 2 have not been read yet",
        "gateway": "ok",
    }
    until(lambda: controller.checks() == word, "what it lacks")
    gateway = controller.ask("/readyz", controller.gateway)
    assert gateway is not None
    assert gateway.status_code == 503
    assert 'jupyter_to_job_ready{check="watches"} 0.0' in controller.metrics()
    failing = 'jupyter_to_job_failing_watches{resource="pods"} 1.0'
    until(lambda: failing in controller.metrics(), "its watches fail")
    assert controller.end() == 0
    for line in controller.log.read_text().splitlines():
        assert json.loads(line)["level"] in ("info", "warning")


def test_idle_clients_leave_room_for_others(
    exchange: Path, tmp_path: Path, room_for_clients: int
) -> None:
    with running(exchange, tmp_path, (SOFT_LIMIT, room_for_clients)) as controller:
        serve(controller)
        with idle_clients(controller.gateway):
            answer = controller.ask("/api/health", controller.gateway)
            assert answer is not None
            assert answer.status_code == 200
            until(lambda: controller.checks().get("exchange") == "ok", "a file can be written")
        assert controller.log.stat().st_size < MAX_LOG


@pytest.mark.usefixtures("room_for_clients")
@pytest.mark.parametrize("name", ["gateway", "operations"])
def test_idle_clients_never_take_all_files(exchange: Path, tmp_path: Path, name: str) -> None:
    """Where the hard limit is low, too, some are turned away until others have gone."""
    with running(exchange, tmp_path, (SOFT_LIMIT, SOFT_LIMIT)) as controller:
        serve(controller)
        ports = {"gateway": controller.gateway, "operations": controller.operations}
        taken = ports.pop(name)
        with idle_clients(taken) as clients:
            until(lambda: is_closed(clients[-1]), "the last one is turned away")
            assert not is_closed(clients[0])
            until(
                lambda: controller.checks(*ports.values()).get("exchange") == "ok",
                "a file can be written",
            )
        until(lambda: controller.ask("/healthz", taken), "there is room again")
        log = controller.log.read_text()
        assert "so new ones are closed" in log
        assert len(log) < MAX_LOG


def is_closed(client: socket.socket) -> bool:
    client.settimeout(0)
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
