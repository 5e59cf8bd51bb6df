"""A controller for all namespaces: it ends at its start if it may not watch all of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from .test_controller_process import Controller
from .test_watches import ApiServer, serving


@pytest.fixture
def server() -> ApiServer:
    return ApiServer()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "controller"
    made.mkdir()
    return made


async def test_without_the_rights_it_ends_and_says_what_to_do(
    server: ApiServer, exchange: Path, folder: Path, tmp_path: Path
) -> None:
    with serving(server, tmp_path) as kubeconfig:
        controller = Controller(exchange, folder, kubeconfig, NAMESPACES="*")
        controller.unlock()
        code = await asyncio.to_thread(controller.process.wait, 60)
    last = controller.log.read_text().splitlines()[-1]
    assert code == 2
    assert "may not watch Jobs and pods in all namespaces" in last
    assert "k8s/overlays/whole-cluster" in last


async def test_with_the_rights_it_is_ready(
    server: ApiServer, exchange: Path, folder: Path, tmp_path: Path
) -> None:
    server.namespaces.add("*")
    with serving(server, tmp_path) as kubeconfig:
        controller = Controller(exchange, folder, kubeconfig, NAMESPACES="*")
        try:
            controller.unlock()
            while (await asyncio.to_thread(controller.checks)).get("watches") != "ok":
                assert controller.process.poll() is None, controller.log.read_text()
                await asyncio.sleep(0.1)
            assert controller.process.poll() is None
        finally:
            code = await asyncio.to_thread(controller.end)
    assert code == 0
