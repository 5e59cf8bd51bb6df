"""Large notebooks at a real gateway: they are read in bounded memory, one at a time."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from jupyter_to_job.controller.intake import snapshots
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.workspace import summarize_notebook
from jupyter_to_job.workspace.freezing.freeze import MAX_SENT_NOTEBOOK

from .test_dev_pods_world import NODES, NOTEBOOK, NOTEBOOK_PATH, DevPod, dev_pod

HEAD = b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {%s}, "cells": [%s'
LINE = json.dumps("x" * 70 + "\n").encode() + b","
EMOJI = '"\N{GRINNING FACE}"'.encode()
"""One of these in a notebook, and each of its characters takes four bytes."""


@pytest.fixture
def exchange(tmp_path: Path) -> FileExchange:
    made = FileExchange(tmp_path / "exchange")
    made.prepare()
    return made


def ordinary(size: int) -> bytes:
    """Return a notebook of `size` bytes that has printed lines."""
    cell = b'{"cell_type": "code", "source": [], "outputs": [{"output_type": "stream", "text": ['
    metadata = b'"kernelspec": {"name": "python3"}'
    head, tail = HEAD % (metadata, cell), EMOJI + b"]}]}]}"
    return (head + LINE * ((size - len(head) - len(tail)) // len(LINE)) + tail).ljust(size)


def hostile(size: int) -> bytes:
    """Return a notebook of `size` bytes that takes twenty times as much memory."""
    head, tail = HEAD % (b"", b'], "more": ['), b"[]]}"
    return (head + b"[]," * ((size - len(head) - len(tail)) // 3) + tail).ljust(size)


def submit(pod: DevPod, data: bytes) -> Any:
    digest = hashlib.sha256(data).hexdigest()
    pod.client.put(f"blobs/{digest}", content=data, headers=pod.headers).raise_for_status()
    return pod.post("jobs", notebook=NOTEBOOK_PATH, expected_sha256=digest)


def test_a_hostile_one_is_refused_and_an_ordinary_one_accepted(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 8 << 20
    monkeypatch.setattr(
        snapshots, "MAX_MEMORY", snapshots.MAX_MEMORY * size // MAX_SENT_NOTEBOOK * 2
    )
    with dev_pod(exchange, "ReadWriteMany", NODES) as pod:
        error = submit(pod, hostile(size))["error"]
        job = submit(pod, ordinary(size))
    assert (error["code"], error["message"], error["hint"]) == (
        "bad_notebook",
        f"{NOTEBOOK_PATH} could not be read (exit status 1).",
        "Make it smaller.",
    )
    assert exchange.jobs() == {job["name"]}
    assert exchange.request(job["name"]).kernel == "python3"


def test_a_parameters_cell_that_is_too_large_for_an_answer(exchange: FileExchange) -> None:
    """The answer of the subprocess is read into the controller's memory."""
    cell = b'{"cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": "'
    data = HEAD % (b"", cell) + b"x" * (33 << 20) + b'"}]}'
    with dev_pod(exchange, "ReadWriteMany", NODES) as pod:
        assert "could not be read" in submit(pod, data)["error"]["message"]


def test_the_largest_ordinary_one_has_enough_memory() -> None:
    data = ordinary(MAX_SENT_NOTEBOOK)
    assert summarize_notebook(data, "a.ipynb", snapshots.MAX_MEMORY).kernel == "python3"


def test_they_are_read_one_after_the_other(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "MAX_WAIT", 0.1)
    data = ordinary(3 << 20)
    with dev_pod(exchange, "ReadWriteMany", NODES) as pod:
        with snapshots._turn:
            error = submit(pod, data)["error"]
            assert submit(pod, NOTEBOOK)["state"]
        job = submit(pod, data)
    assert error["code"] == "unavailable"
    assert "other large notebooks" in error["message"]
    assert job["name"] in exchange.jobs()
