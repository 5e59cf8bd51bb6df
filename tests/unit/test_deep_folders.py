"""Folders of any depth and number in the paths of inputs: they are refused, and stop nothing."""

from __future__ import annotations

import hashlib
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from jupyter_to_job.backends.memory import MemoryBackend
from jupyter_to_job.controller.intake.budgets import Budgets, Caps, blob_folder
from jupyter_to_job.controller.intake.housekeeping import Housekeeping
from jupyter_to_job.controller.metrics import Metrics
from jupyter_to_job.domain.errors import BadInput
from jupyter_to_job.domain.job import Submission
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.exchange.disk_use import bytes_on_disk, freed_with
from jupyter_to_job.exchange.retention import Policy
from jupyter_to_job.flavors import load_catalog
from jupyter_to_job.service.jobs import JobService, ServiceContext
from jupyter_to_job.service.submitting.submission import Caller
from jupyter_to_job.workspace.freezing import inputs

from .. import notebooks
from ..gateways import context_of, serving
from ..processes import until

NOTEBOOK = b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}'
SHA256 = hashlib.sha256(NOTEBOOK).hexdigest()
LEVELS = 1800
"""More than Python's stack has, and with one letter each fewer than a path may have on Linux."""


@pytest.fixture
def exchange(tmp_path: Path) -> FileExchange:
    found = FileExchange(tmp_path / "exchange")
    found.prepare()
    return found


@pytest.fixture
def gateway(exchange: FileExchange) -> Iterator[httpx.Client]:
    """A gateway's client, which has sent a notebook."""
    with context_of(exchange) as context, serving(context) as url:
        headers = {"Authorization": "Bearer eve"}
        with httpx.Client(base_url=f"{url}/api/", headers=headers, timeout=60) as client:
            assert client.put(f"blobs/{SHA256}", content=NOTEBOOK).is_success
            yield client


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """A folder with a file that is `LEVELS` folders below it."""
    folder = tmp_path / "deep"
    path = folder / "/".join("a" * LEVELS)
    subprocess.run(["mkdir", "-p", path], check=True)
    (path / "f").write_bytes(b"deep")
    yield folder
    subprocess.run(["rm", "-rf", *tmp_path.iterdir()], check=True)


def submit(gateway: httpx.Client, paths: list[str]) -> httpx.Response:
    named = [{"path": path, "sha256": SHA256} for path in paths]
    body = {"notebook": "w/a.ipynb", "expected_sha256": SHA256, "inputs": named}
    return gateway.post("jobs", json=body)


def drafts(exchange: FileExchange) -> list[Path]:
    return list(exchange.root.glob(".new-*"))


@pytest.mark.parametrize("path", ["a/" * LEVELS + "f", "a/" * 64 + "f", "b" * 256, "c/" * 513])
def test_a_path_that_is_too_long_for_an_input(
    gateway: httpx.Client, exchange: FileExchange, path: str
) -> None:
    answer = submit(gateway, ["w/b.csv", path])
    assert answer.status_code == 400, answer.text
    assert "is too long" in answer.json()["error"]["message"]
    assert drafts(exchange) == []


def test_an_input_as_deep_as_it_may_be(gateway: httpx.Client) -> None:
    assert submit(gateway, ["a/" * 63 + "f"]).status_code == 201


def test_inputs_in_too_many_folders(gateway: httpx.Client, exchange: FileExchange) -> None:
    """Each of them takes an inode, and a write to the disk that is waited for."""
    answer = submit(gateway, [f"{number}/" + "a/" * 62 + "f" for number in range(160)])
    assert answer.status_code == 413, answer.text
    assert "more than 10,000 folders" in answer.json()["error"]["message"]
    assert (drafts(exchange), exchange.jobs()) == ([], frozenset())


def test_inputs_in_as_many_folders_as_there_may_be(
    gateway: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "MAX_FOLDERS", 3)
    assert submit(gateway, ["a/b/c/f", "a/b/c/g", "a/f", "f"]).status_code == 201
    assert submit(gateway, ["a/b/c/f", "a/d/f"]).status_code == 413


def test_too_many_inputs(gateway: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MAX_FILES", 3)
    assert submit(gateway, ["a", "b", "c"]).status_code == 201
    answer = submit(gateway, ["a", "b", "c", "d"])
    assert answer.status_code == 413
    assert "more than 3 files, d among them" in answer.json()["error"]["message"]


def test_folders_count_for_their_owner(gateway: httpx.Client, exchange: FileExchange) -> None:
    budgets = Budgets(exchange, Caps())
    before = budgets.measure()
    assert submit(gateway, [f"{number}/f" for number in range(200)]).status_code == 201
    (job,) = exchange.jobs()
    blocks = [path.stat().st_blocks for path in (exchange.directory(job) / "inputs").iterdir()]
    assert len(blocks) == 200
    assert budgets.measure() - before >= 512 * sum(blocks)
    assert freed_with(exchange.directory(job)) >= 512 * sum(blocks)


def test_a_notebook_in_too_many_folders(gateway: httpx.Client) -> None:
    body = {"notebook": "a/" * LEVELS + "a.ipynb", "expected_sha256": SHA256}
    assert gateway.post("jobs", json=body).status_code == 400


def test_a_deep_draft_does_not_end_housekeeping(exchange: FileExchange, deep: Path) -> None:
    draft = exchange.root / ".new-0123"
    deep.rename(draft)
    blob = blob_folder(exchange.root, "eve") / SHA256
    blob.parent.mkdir(parents=True)
    blob.write_bytes(NOTEBOOK)
    for path in (draft, blob):
        os.utime(path, (0, 0))
    metrics = Metrics()
    house = Housekeeping(exchange, Budgets(exchange, Caps()), Policy(None, cap=1), metrics)
    house.start()
    try:
        until(lambda: not blob.exists(), "the blob that is due is gone")
    finally:
        house.stop()
        # What it still does in its round would be in the way of who removes the folder.
        until(lambda: "housekeeping" not in {t.name for t in threading.enumerate()}, "it has ended")
    assert bytes_on_disk(exchange.root) > 0  # which caps go by


def service(exchange: FileExchange, workspace: Path) -> JobService:
    """The service of a workspace with the notebook `a.ipynb`."""
    notebooks.write(workspace / "a.ipynb", "1")
    core = ServiceContext(exchange, MemoryBackend(exchange), load_catalog)
    return JobService(core, Caller("me", str(workspace)))


@pytest.mark.parametrize("pattern", [".", "deep", "**/f", "deep/" + "a/" * LEVELS + "f"])
def test_a_workspace_with_too_many_folders(
    exchange: FileExchange, tmp_path: Path, deep: Path, pattern: str
) -> None:
    jobs = service(exchange, tmp_path)
    with pytest.raises(BadInput, match="is too long"):
        jobs.submit(Submission("a.ipynb", inputs=(pattern,)))
    assert (drafts(exchange), jobs.find().jobs) == ([], [])
    assert deep.is_dir()


def test_what_is_not_sent_may_be_too_deep(exchange: FileExchange, tmp_path: Path) -> None:
    """An ignore file leaves out a folder that would be searched, as its refusal says."""
    folder = tmp_path / "/".join("a" * 64)
    (folder / "b").mkdir(parents=True)
    for path in (tmp_path / "a.csv", folder / "f", folder / "b" / "b.csv"):
        path.touch()
    jobs, submission = service(exchange, tmp_path), Submission("a.ipynb", inputs=("**/*.csv",))
    with pytest.raises(BadInput) as raised:
        jobs.submit(submission)
    assert ".jobignore" in raised.value.hint
    (tmp_path / ".jobignore").write_text("b/\n")
    job, _ = jobs.submit(submission)
    assert [file.path for file in exchange.request(job.name).inputs] == ["a.csv"]
