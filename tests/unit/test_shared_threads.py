"""The gateway's threads for large requests: no owner holds all of them."""

from __future__ import annotations

import gc
import hashlib
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from job_runner.protocol import documents
from job_runner.protocol.journal import journal
from jupyter_to_job.controller import jobs
from jupyter_to_job.controller.intake.intake import MAX_THREADS
from jupyter_to_job.controller.intake.snapshots import read_snapshot
from jupyter_to_job.exchange import FileExchange

from ..gateways import context_of, serving
from ..processes import until
from . import exchanges

JOB = "train-abcdefgh"
NOTEBOOK = json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}).encode()
SHA256 = hashlib.sha256(NOTEBOOK).hexdigest()


class SlowSnapshots:
    """Reads snapshots when it may; `waiting` counts those that wait for it in a thread."""

    def __init__(self) -> None:
        self.may_read = threading.Event()
        self.waiting = self.most = 0
        self._read, self._lock = read_snapshot, threading.Lock()

    def __call__(self, *arguments: Any) -> tuple[bytes, str | None]:
        with self._lock:
            self.waiting += 1
            self.most = max(self.most, self.waiting)
        assert self.may_read.wait(60)
        with self._lock:
            self.waiting -= 1
        return self._read(*arguments)


def test_slow_submissions_of_one_owner_leave_threads_for_everybody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = FileExchange(tmp_path / "exchange")
    assert exchange.create(exchanges.request(JOB, owner="ada"), NOTEBOOK)
    slow = SlowSnapshots()
    monkeypatch.setattr(jobs, "read_snapshot", slow)
    with context_of(exchange) as context, serving(context) as url:

        def call(method: str, path: str, token: str, **options: Any) -> httpx.Response:
            headers = {"Authorization": f"Bearer {token}"}
            address = f"{url}/api/{path}"
            return httpx.request(method, address, headers=headers, timeout=30, **options)

        def submit() -> int:
            body = {"notebook": "w/a.ipynb", "expected_sha256": SHA256}
            return call("POST", "jobs", "eve", json=body).status_code

        assert call("PUT", f"blobs/{SHA256}", "eve", content=NOTEBOOK).is_success
        with ThreadPoolExecutor(16) as clients:
            try:
                answers = [clients.submit(submit) for _ in range(16)]
                until(lambda: slow.waiting >= MAX_THREADS, "the owner's threads are all in use")
                assert call("PUT", f"blobs/{SHA256}", "ada", content=NOTEBOOK).is_success
                attempt, agent = f"exchange/{JOB}/attempt-1", f"{JOB}/pod-1"
                claim = documents.encode({"pod": "pod-1"})
                assert call("PUT", f"{attempt}/runner.json", agent, content=claim).is_success
                line = journal.encode({"k": "start", "t": 1.0})
                segment = f"{attempt}/journal/00000001.jsonl"
                sent = call("POST", segment, agent, params={"offset": 0}, content=line)
                assert sent.is_success
            finally:
                slow.may_read.set()
            assert [answer.result() for answer in answers] == 16 * [201]
        assert slow.most == MAX_THREADS
        gc.collect()
        assert not context.intake._turns, "nothing is kept of owners without a request"
