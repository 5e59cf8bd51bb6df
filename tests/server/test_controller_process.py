"""The controller's process: alive while it waits, ready when it can work, and its end."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from jupyter_to_job.controller.one_writer import LOCK

from ..ports import free_port
from ..processes import until
from ..unit.test_operations import KUBECONFIG


class Controller:
    """A controller whose exchange another one has until `unlock`.

    Without a `kubeconfig` its API server is away.
    """

    def __init__(
        self, exchange: Path, folder: Path, kubeconfig: Path | None = None, **settings: str
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
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, env={**os.environ, **env}, stderr=log)

    def unlock(self) -> None:
        self._lock.close()

    def ask(self, path: str, port: int | None = None) -> httpx.Response | None:
        try:
            return httpx.get(f"http://127.0.0.1:{port or self.operations}{path}", timeout=60)
        except httpx.TransportError:
            return None

    def checks(self) -> dict[str, str]:
        answer = self.ask("/readyz")
        return {} if answer is None else answer.json()["checks"]

    def metrics(self) -> str:
        answer = self.ask("/metrics")
        return "" if answer is None else answer.text

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


@pytest.fixture
def controller(exchange: Path, tmp_path: Path) -> Iterator[Controller]:
    made = Controller(exchange, tmp_path)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait()
        made.unlock()


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
