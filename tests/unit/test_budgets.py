"""What a gateway keeps of a run and of an owner, over HTTP: what is over it is refused and said."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import httpx
import pytest

from job_runner.attempt.finish import finish_job
from job_runner.protocol import documents, layout
from job_runner.protocol.journal import journal
from job_runner.protocol.outcome import Outcome, read_outcome
from jupyter_to_job.agent.agent import Agent
from jupyter_to_job.agent.gateway_connection import GatewayConnection
from jupyter_to_job.agent.shared_folder import SharedFolder
from jupyter_to_job.controller.intake import attempt_budgets
from jupyter_to_job.controller.intake.blobs import BLOB_TTL, collect
from jupyter_to_job.controller.intake.budgets import Budgets, Caps
from jupyter_to_job.domain.errors import StorageFull
from jupyter_to_job.exchange import FileExchange, files

from ..gateways import context_of, serving
from . import exchanges
from .exchanges import OUTCOME

JOB = "train-abcdefgh"
KIB, MIB = 1 << 10, 1 << 20
AGENT = f"{JOB}/pod-1"
SEGMENT = f"exchange/{JOB}/attempt-1/journal/00000001.jsonl"
NOTEBOOK = json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}).encode()
SHA256 = hashlib.sha256(NOTEBOOK).hexdigest()
Call = Callable[..., httpx.Response]


@pytest.fixture
def exchange(tmp_path: Path) -> FileExchange:
    found = FileExchange(tmp_path / "exchange")
    assert found.create(exchanges.request(JOB, owner="ada", snapshot_sha256=SHA256), NOTEBOOK)
    return found


@pytest.fixture
def gateway(exchange: FileExchange) -> Iterator[Callable[[Caps], Call]]:
    """Starts a gateway with these caps; return a function that calls it."""
    with ExitStack() as stack:

        def start(caps: Caps) -> Call:
            url = stack.enter_context(serving(stack.enter_context(context_of(exchange, caps))))
            client = stack.enter_context(httpx.Client(base_url=f"{url}/api/", timeout=30))

            def call(method: str, path: str, token: str = AGENT, **options: Any) -> httpx.Response:
                headers = {"Authorization": f"Bearer {token}"}
                return client.request(method, path, headers=headers, **options)

            return call

        yield start


def claim(call: Call) -> None:
    path = f"exchange/{JOB}/attempt-1/runner.json"
    assert call("PUT", path, content=documents.encode({"pod": "pod-1"})).is_success


def send_outcome(call: Call) -> None:
    path = f"exchange/{JOB}/attempt-1/outcome.json"
    assert call("PUT", path, content=documents.encode(OUTCOME)).is_success


def append(call: Call, data: bytes, offset: int = 0, path: str = SEGMENT) -> httpx.Response:
    return call("POST", path, params={"offset": offset}, content=data)


def error_of(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


def finished(exchange: FileExchange) -> tuple[Outcome, str]:
    """Finish the job as the controller does; return its outcome and its result's text."""
    directory = exchange.directory(JOB)
    assert finish_job(directory, None, None) == 0
    outcome = read_outcome(directory / "attempt-1")
    assert outcome is not None
    result = (directory / "attempt-1" / layout.RESULT).read_bytes()
    assert outcome.result_sha256 == hashlib.sha256(result).hexdigest()
    return outcome, result.decode()


def stream(text: str) -> bytes:
    output = {"output_type": "stream", "name": "stdout", "text": text}
    return journal.encode({"t": 2.0, "k": "output", "i": 0, "output": output})


def test_a_line_without_an_end(gateway: Callable[[Caps], Call], exchange: FileExchange) -> None:
    call = gateway(Caps(record=MIB, reserve=0))
    claim(call)
    first = stream("kept")
    assert append(call, first).is_success
    length = len(first)
    for _ in range(4):  # a megabyte of one line is fine
        assert append(call, b"x" * (256 * KIB), length).is_success
        length += 256 * KIB
    refused = append(call, b"x", length)
    assert error_of(refused) == (413, "over_budget")
    assert "record of more than 1 MiB" in refused.json()["error"]["message"]
    again = append(call, b"\n" + stream("later"), length)
    assert error_of(again) == (413, "over_budget")  # nothing after a cut
    send_outcome(call)
    outcome, result = finished(exchange)
    assert outcome.state == "succeeded"
    assert outcome.message == "Its journal was cut: it has a record of more than 1 MiB."
    assert "kept" in result
    assert "the journal of this run ends here" in result
    assert "later" not in result
    first_page = call("GET", f"jobs/{JOB}/logs", token="ada").json()
    query = {"offset": first_page["next"]}
    last_page = call("GET", f"jobs/{JOB}/logs", token="ada", params=query).json()
    assert "kept" in first_page["text"]
    assert "the journal of this run ends here" in last_page["text"]


def test_a_restarted_gateway_goes_on_counting(gateway: Callable[[Caps], Call]) -> None:
    caps = Caps(record=MIB, attempt=2 * MIB, reserve=0)
    call = gateway(caps)
    claim(call)
    assert append(call, b"x" * (MIB - 1)).is_success
    other = gateway(caps)  # knows nothing but the disk
    assert error_of(append(other, b"xx", MIB - 1)) == (413, "over_budget")
    third = gateway(caps)
    assert error_of(append(third, b"\n", MIB - 1)) == (413, "over_budget")


def test_a_journal_over_the_budget_of_an_attempt(
    gateway: Callable[[Caps], Call], exchange: FileExchange
) -> None:
    call = gateway(Caps(attempt=100 * KIB, reserve=0))
    claim(call)
    length, line = 0, stream("y" * KIB)
    while (response := append(call, line, length)).is_success:
        length += len(line)
    assert error_of(response) == (413, "over_budget")
    assert 90 * KIB < length <= 100 * KIB
    send_outcome(call)
    outcome, result = finished(exchange)
    assert outcome.message == (
        "Its journal was cut: it is over the 100 KiB that are kept of one attempt."
    )
    assert "the journal of this run ends here" in result


@pytest.mark.parametrize(
    "name",
    [
        "journal/90000000.jsonl",  # the gateway's own, which would look cut
        "journal/99999999.jsonl",  # after it `finish` could not write the end
        "artifacts/" + "a/" * 70 + "b",
        "artifacts/" + "a" * 2000,
        "artifacts/" + "a" * 300,
    ],
)
def test_a_file_of_an_impossible_name(gateway: Callable[[Caps], Call], name: str) -> None:
    call = gateway(Caps(reserve=0))
    claim(call)
    for method in ("PUT", "POST"):
        path = f"exchange/{JOB}/attempt-1/{name}"
        response = call(method, path, params={"offset": 0}, content=b"x")
        assert error_of(response) == (400, "bad_input")  # which nobody tries again


def test_a_path_through_a_file(gateway: Callable[[Caps], Call]) -> None:
    call = gateway(Caps(reserve=0))
    claim(call)
    folder = f"exchange/{JOB}/attempt-1/artifacts"
    assert append(call, b"x", path=f"{folder}/a").is_success
    assert error_of(append(call, b"x", path=f"{folder}/a/b")) == (400, "bad_input")
    assert append(call, b"x", path=f"{folder}/c/d").is_success
    assert append(call, b"x", path=f"{folder}/c").status_code in (400, 409)


def test_a_run_with_too_many_folders(
    gateway: Callable[[Caps], Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt_budgets, "MAX_FOLDERS", 5)
    call = gateway(Caps(reserve=0))
    claim(call)
    folder = f"exchange/{JOB}/attempt-1/artifacts"
    assert append(call, first := stream("kept")).is_success
    for name in ("a/b/f", "a/b/g", "a/f", "c/f"):
        assert append(call, b"x", path=f"{folder}/{name}").is_success
    other = gateway(Caps(reserve=0))  # knows nothing but the disk
    for one in (call, other):
        refused = append(one, b"x", path=f"{folder}/d/f")
        assert error_of(refused) == (413, "over_budget")
        assert "more than the 5 folders" in refused.json()["error"]["message"]
    assert append(call, b"x", path=f"{folder}/c/g").is_success
    assert append(call, stream("more"), len(first)).is_success


def test_two_agents_that_send_the_same_bytes(gateway: Callable[[Caps], Call]) -> None:
    """A piece that was sent before counts once, and its line is not taken for a longer one."""
    call = gateway(Caps(record=MIB, attempt=MIB, reserve=0))
    claim(call)
    line = b"x" * (900 * KIB)
    assert append(call, line).is_success
    again = append(call, line)
    assert (again.status_code, again.json()["error"]["length"]) == (409, len(line))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "shared"
    found.mkdir()
    return found


def agent_of(url: str, folder: Path, stop: threading.Event) -> Agent:
    token = folder / "token"
    token.write_text(AGENT)
    return Agent(GatewayConnection(url, token, JOB), JOB, SharedFolder(folder), "pod-1", stop)


def test_an_agent_ends_whatever_a_notebook_left(exchange: FileExchange, folder: Path) -> None:
    """Its journal has a line without an end and segments of strange names; artifacts are many."""
    stop = threading.Event()
    caps = Caps(record=MIB, attempt=9 * MIB, reserve=0)
    with context_of(exchange, caps) as context, serving(context) as url:
        agent = agent_of(url, folder, stop)
        agent.fetch()
        attempt = folder / JOB / "attempt-1"
        (attempt / layout.JOURNAL).mkdir(parents=True)
        segments = attempt / layout.JOURNAL
        (segments / "00000001.jsonl").write_bytes(stream("kept"))
        with (segments / "00000002.jsonl").open("wb") as file:
            file.truncate(300 * MIB)
        (segments / "00000003.jsonl").write_bytes(stream("later"))
        (segments / "99999999.jsonl").write_bytes(stream("strange"))
        (segments / "00000004.jsonl").mkdir()
        (attempt / layout.ARTIFACTS).mkdir()
        (attempt / layout.ARTIFACTS / "small.txt").write_bytes(b"small")
        with (attempt / layout.ARTIFACTS / "large.bin").open("wb") as file:
            file.truncate(20 * MIB)
        (attempt / layout.OUTCOME).write_bytes(documents.encode(OUTCOME))
        stop.set()
        begun = time.monotonic()
        agent.send_until_ended()
        assert time.monotonic() - begun < 60  # it does not try for ever
    outcome, result = finished(exchange)
    assert outcome.message is not None
    assert "Its journal was cut" in outcome.message
    assert "Files that the run created were left out (large.bin for one)" in outcome.message
    assert "kept" in result and "later" not in result and "strange" not in result
    assert exchange.read(JOB, "attempt-1/artifacts/small.txt") == b"small"


def submit(
    call: Call, data: bytes = NOTEBOOK, inputs: int = 0, owner: str = "eve"
) -> httpx.Response:
    digest = hashlib.sha256(data).hexdigest()
    sent = call("PUT", f"blobs/{digest}", token=owner, content=data)
    if not sent.is_success:
        return sent
    named = [{"path": f"w/{n}.csv", "sha256": digest} for n in range(inputs)]
    body = {"notebook": "w/a.ipynb", "expected_sha256": digest, "inputs": named}
    return call("POST", "jobs", token=owner, json=body)


def test_an_owner_who_has_used_it_up(
    gateway: Callable[[Caps], Call], exchange: FileExchange
) -> None:
    call = gateway(Caps(owner=2 * MIB, reserve=0))
    assert submit(call).status_code == 201
    large = NOTEBOOK[:-1] + b" " * (MIB + MIB // 2) + b"}"
    assert submit(call, large).status_code == 201  # a MiB and a half as a blob; the snapshot too
    refused = submit(call, large + b" ", inputs=1)
    assert error_of(refused) == (507, "storage_full")
    assert "Delete jobs" in refused.json()["error"]["hint"]
    digest = hashlib.sha256(b"ada's").hexdigest()
    assert call("PUT", f"blobs/{digest}", token="ada", content=b"ada's").is_success
    claim(call)
    assert append(call, stream("runs go on")).is_success


def test_what_owners_use_is_measured(exchange: FileExchange) -> None:
    budgets = Budgets(exchange, Caps(owner=MIB, reserve=0))
    (exchange.directory(JOB) / "attempt-1").mkdir()
    (exchange.directory(JOB) / "attempt-1" / "large").write_bytes(os.urandom(2 * MIB))
    budgets.require_room("ada", 1)  # not measured yet
    budgets.measure()
    budgets.require_room("eve", MIB)
    with pytest.raises(StorageFull, match="Your jobs use 2 MiB of the 1 MiB"):
        budgets.require_room("ada", 1)
    shutil.rmtree(exchange.directory(JOB) / "attempt-1")
    budgets.measure()
    budgets.require_room("ada", 1)


def test_requests_are_read_once_for_the_owners(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A count of the disk comes every hour, and there may be thousands of jobs."""
    monkeypatch.setattr(files, "CACHED_REQUESTS", 0)
    exchange = FileExchange(tmp_path / "many", is_private=False)
    for name in (JOB, "train-bbbbbbbb"):
        exchanges.add(exchange, name)
    budgets = Budgets(exchange, Caps(owner=MIB, reserve=0))
    assert (size := budgets.measure()) > 0
    monkeypatch.setattr(exchange, "request", _refuse)
    assert budgets.measure() == size


def _refuse(name: str) -> NoReturn:
    raise AssertionError(f"{name} was read again")


def test_deleting_a_job_makes_room_at_once(exchange: FileExchange) -> None:
    """The next count of the disk may come in an hour."""
    context = context_of(exchange, Caps(owner=MIB, reserve=0))
    with context as made, serving(made) as url, httpx.Client(base_url=f"{url}/api/") as client:

        def call(method: str, path: str, token: str = AGENT, **options: Any) -> httpx.Response:
            headers = {"Authorization": f"Bearer {token}"}
            return client.request(method, path, headers=headers, **options)

        claim(call)
        send_outcome(call)
        (exchange.directory(JOB) / "attempt-1" / "large").write_bytes(os.urandom(2 * MIB))
        made.intake.budgets.measure()
        assert error_of(submit(call, owner="ada")) == (507, "storage_full")
        assert submit(call, owner="eve").status_code == 201
        assert call("DELETE", f"jobs/{JOB}", token="ada").is_success
        assert submit(call, owner="ada").status_code == 201


def test_inputs_need_their_room_once(
    gateway: Callable[[Caps], Call], exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are on the disk when a job asks for them, and it gets links; so does a rerun of it."""
    usage, free = shutil.disk_usage(exchange.root), 4 * MIB
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=free))
    call = gateway(Caps(owner=4 * MIB, reserve=MIB))
    digest = hashlib.sha256(data := os.urandom(2 * MIB)).hexdigest()
    assert call("PUT", f"blobs/{digest}", token="eve", content=data).is_success
    free = 2 * MIB
    assert call("PUT", f"blobs/{SHA256}", token="eve", content=NOTEBOOK).is_success
    named = [{"path": f"w/{name}.bin", "sha256": digest} for name in "ab"]
    body = {"notebook": "w/a.ipynb", "expected_sha256": SHA256, "inputs": named}
    made = call("POST", "jobs", token="eve", json=body)
    assert made.status_code == 201, made.text
    name = made.json()["name"]
    again = call("POST", f"jobs/{name}/rerun", token="eve", json={})
    assert again.status_code == 201, again.text
    budgets = Budgets(exchange, Caps(owner=4 * MIB, reserve=0))
    budgets.measure()
    budgets.require_room("eve", MIB)
    with pytest.raises(StorageFull):
        budgets.require_room("eve", 2 * MIB)


def test_inputs_over_the_limit_in_all(gateway: Callable[[Caps], Call]) -> None:
    """One blob under many names would be as many copies."""
    call = gateway(Caps(inputs=MIB, reserve=0))
    large = NOTEBOOK[:-1] + b" " * (300 * KIB) + b"}"
    assert submit(call, large, inputs=3).status_code == 201
    assert error_of(submit(call, large, inputs=4)) == (413, "too_large")


def test_a_disk_that_is_almost_full(
    gateway: Callable[[Caps], Call], exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(exchange.root)
    free = 100 * MIB
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=free))
    call = gateway(Caps(reserve=80 * MIB))
    claim(call)
    assert submit(call).status_code == 201
    free = 70 * MIB
    refused = submit(call)
    assert error_of(refused) == (507, "storage_full")
    assert refused.json()["error"]["hint"]
    artifact = f"exchange/{JOB}/attempt-1/artifacts/a"
    assert append(call, b"x", path=artifact).is_success
    free = 30 * MIB
    assert error_of(append(call, b"x", 1, path=artifact)) == (507, "storage_full")
    first = stream("runs go on")
    assert append(call, first).is_success
    free = 10 * MIB
    assert error_of(append(call, b"x", len(first))) == (503, "unavailable")  # it waits
    # ... and can end all the same, once its agent has compared what it sent.
    assert append(call, b"", len(first)).is_success
    assert append(call, b"", 1, path=artifact).is_success
    send_outcome(call)


def test_a_disk_with_few_free_inodes(
    gateway: Callable[[Caps], Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing could be made on it, however many bytes are free."""
    statvfs, share = os.statvfs, 0.5

    def few(path: Path) -> os.statvfs_result:
        fields = list(statvfs(path))
        fields[5:8] = [1_000_000, int(share * 1_000_000), int(share * 1_000_000)]
        return os.statvfs_result(fields)

    monkeypatch.setattr(os, "statvfs", few)
    call = gateway(Caps(reserve=MIB))
    claim(call)
    assert submit(call).status_code == 201
    share = 0
    assert error_of(submit(call)) == (507, "storage_full")
    artifact = f"exchange/{JOB}/attempt-1/artifacts/a"
    assert error_of(append(call, b"x", path=artifact)) == (507, "storage_full")
    send_outcome(call)


@pytest.mark.parametrize("numbers", [[0, 0, 0], [4711, -1, -1]], ids=["none", "CephFS"])
def test_a_disk_that_does_not_count_inodes(
    gateway: Callable[[Caps], Call], monkeypatch: pytest.MonkeyPatch, numbers: list[int]
) -> None:
    statvfs = os.statvfs

    def uncounted(path: Path) -> os.statvfs_result:
        fields = list(statvfs(path))
        fields[5:8] = numbers
        return os.statvfs_result(fields)

    monkeypatch.setattr(os, "statvfs", uncounted)
    call = gateway(Caps(reserve=MIB))
    claim(call)
    assert submit(call).status_code == 201
    assert append(call, stream("runs go on")).is_success
    send_outcome(call)


def test_blobs_go_an_hour_after_their_last_use(
    gateway: Callable[[Caps], Call], exchange: FileExchange
) -> None:
    call = gateway(Caps(reserve=0))
    used, unused = (hashlib.sha256(data).hexdigest() for data in (b"used", b"unused"))
    assert call("PUT", f"blobs/{used}", token="ada", content=b"used").is_success
    assert call("PUT", f"blobs/{unused}", token="eve", content=b"unused").is_success
    for blob in exchange.root.glob(".blobs/*/*"):
        os.utime(blob, (0, time.time() - BLOB_TTL + 60))
    assert collect(exchange.root, time.time()) == 0
    assert call("HEAD", f"blobs/{used}", token="ada").is_success  # a use
    assert collect(exchange.root, time.time() + 120) == 1
    assert call("HEAD", f"blobs/{unused}", token="eve").status_code == 409
    assert [blob.name for blob in exchange.root.glob(".blobs/*/*")] == [used]
    assert len(list(exchange.root.glob(".blobs/*"))) == 1
    assert call("PUT", f"blobs/{unused}", token="eve", content=b"unused").is_success


def test_a_runner_drops_output_before_its_journal_is_cut() -> None:
    caps = replace(Caps(), attempt=100)
    assert caps.output_limit(None) == 75
    assert caps.output_limit(1000) == 75
    assert caps.output_limit(10) == 10
