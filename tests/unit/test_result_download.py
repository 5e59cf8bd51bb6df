"""Large results on their way to a workspace: resumed after cuts, and checked by their digest."""

from __future__ import annotations

import hashlib
import io
import os
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from job_runner.protocol import documents, layout
from jupyter_to_job.api import ApiRequest
from jupyter_to_job.api.ranges import file_response
from jupyter_to_job.backends.memory import MemoryBackend
from jupyter_to_job.domain.errors import Damaged, NotFound, TooLarge, Unavailable
from jupyter_to_job.exchange import FileExchange, patience
from jupyter_to_job.flavors import load_catalog
from jupyter_to_job.service.jobs import JobService, ServiceContext
from jupyter_to_job.service.remote import RemoteJobs
from jupyter_to_job.service.submitting.submission import Caller

from ..cutting_proxy import CuttingProxy, cutting_proxy
from ..gateways import context_of, serving
from . import exchanges

MIB = 1 << 20
SIZE = 8 * MIB
OVERHEAD = MIB
JOB = "train-abcdefgh"


@pytest.fixture(autouse=True)
def quick_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "MIN_DELAY", 0.01)


@pytest.fixture
def exchange(tmp_path: Path) -> FileExchange:
    """An exchange with a job that has ended."""
    made = FileExchange(tmp_path / "exchange")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    absolute = str(workspace / "train.ipynb")
    exchanges.end(
        exchanges.add(made, JOB, owner="ada", notebook=absolute[1:], source=absolute, workspace="/")
    )
    return made


@pytest.fixture
def data(exchange: FileExchange) -> bytes:
    made = os.urandom(SIZE)
    set_result(exchange, made)
    return made


def set_result(exchange: FileExchange, data: bytes) -> None:
    """Give the job another result, and its digest."""
    attempt = exchange.directory(JOB) / "attempt-1"
    documents.write_bytes(attempt / layout.RESULT, data)
    outcome = documents.read_document(attempt / layout.OUTCOME)
    assert outcome is not None
    outcome["result_sha256"] = hashlib.sha256(data).hexdigest()
    documents.write_document(attempt / layout.OUTCOME, outcome)


@pytest.fixture
def proxy(exchange: FileExchange) -> Iterator[CuttingProxy]:
    with (
        context_of(exchange) as context,
        serving(context) as url,
        cutting_proxy(url) as made,
    ):
        yield made


@pytest.fixture
def jobs(proxy: CuttingProxy, tmp_path: Path) -> RemoteJobs:
    token = tmp_path / "token"
    token.write_text("ada")
    return RemoteJobs(proxy.url, token, Caller("ada", str(tmp_path / "workspace")))


def test_cuts(jobs: RemoteJobs, proxy: CuttingProxy, data: bytes, tmp_path: Path) -> None:
    proxy.cut_after_received(SIZE // 2)
    delivered = jobs.deliver(JOB)
    assert delivered.delivery.path == f"{JOB}.ipynb"
    assert (tmp_path / "workspace" / f"{JOB}.ipynb").read_bytes() == data
    assert proxy.cuts == 1
    assert proxy.received < SIZE + OVERHEAD


def test_the_gateway_is_another_one_half_way(
    jobs: RemoteJobs, proxy: CuttingProxy, exchange: FileExchange, data: bytes
) -> None:
    with context_of(exchange) as context, serving(context) as second:
        proxy.cut_after_received(SIZE // 2)
        proxy.upstream, first = second, proxy.upstream
        assert first != second
        opened = jobs.notebook(JOB)
    with opened.file as file:
        assert file.read() == data
    assert opened.sha256 == hashlib.sha256(data).hexdigest()


def test_what_is_too_large_is_not_fetched(
    jobs: RemoteJobs, proxy: CuttingProxy, exchange: FileExchange, data: bytes
) -> None:
    with pytest.raises(TooLarge, match="over 1 MiB"):
        jobs.notebook(JOB, 1 << 20)
    assert proxy.received < SIZE
    context = ServiceContext(exchange, MemoryBackend(exchange), load_catalog)
    at_hand = JobService(context, Caller("ada", "/"), wake=lambda *_: None)
    with pytest.raises(TooLarge, match="over 1 MiB"):
        at_hand.notebook(JOB, 1 << 20)
    for service in (jobs, at_hand):
        with service.notebook(JOB, len(data)).file as file:
            assert file.read() == data


def test_another_result_between_two_ranges(
    jobs: RemoteJobs, proxy: CuttingProxy, exchange: FileExchange, data: bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The rest of it would not fit the beginning of the other one."""
    other = os.urandom(SIZE - MIB)
    proxy.cut_after_received(SIZE // 2)
    monkeypatch.setattr(time, "sleep", lambda _: set_result(exchange, other))
    opened = jobs.notebook(JOB)
    with opened.file as file:
        assert file.read() == other
    assert opened.sha256 == hashlib.sha256(other).hexdigest()
    assert len(data) == SIZE


def test_a_damaged_result_is_not_shown(
    jobs: RemoteJobs, exchange: FileExchange, data: bytes
) -> None:
    path = exchange.directory(JOB) / "attempt-1" / layout.RESULT
    path.write_bytes(data[:-1] + b"?")
    with pytest.raises(Damaged, match=f"of {JOB} is damaged"):
        jobs.notebook(JOB)
    path.write_bytes(data)
    with jobs.notebook(JOB).file as file:
        assert file.read() == data


def test_a_gateway_that_goes_away_for_good(
    jobs: RemoteJobs, proxy: CuttingProxy, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "PATIENCE", 0.2)
    proxy.cut_after_received(len(data) // 2)
    proxy.close()
    with pytest.raises(Unavailable):
        jobs.notebook(JOB)


def test_a_deleted_job(jobs: RemoteJobs, exchange: FileExchange) -> None:
    exchange.remove(JOB)
    with pytest.raises(NotFound):
        jobs.notebook(JOB)


@pytest.mark.parametrize(
    ("headers", "status", "content"),
    [
        ({}, 200, "0123456789"),
        ({"Range": "bytes=4-"}, 206, "456789"),
        ({"Range": "bytes=4-", "If-Range": f'"{"a" * 64}"'}, 206, "456789"),
        ({"Range": "bytes=4-", "If-Range": '"another"'}, 200, "0123456789"),
        ({"Range": "bytes=10-"}, 416, ""),
        ({"Range": "bytes=4-5"}, 200, "0123456789"),
        ({"Range": "cells=4-"}, 200, "0123456789"),
    ],
)
def test_ranges(tmp_path: Path, headers: dict[str, str], status: int, content: str) -> None:
    path = tmp_path / "file"
    path.write_text("0123456789")
    request = ApiRequest("GET", "x", headers=headers)
    response = file_response(request, path.open("rb"), "a" * 64, "text/plain")
    assert (response.status, b"".join(response.chunks())) == (status, content.encode())
    assert response.headers["ETag"] == f'"{"a" * 64}"'
    if status != 200:
        extent = "4-9" if status == 206 else "*"
        assert response.headers["Content-Range"] == f"bytes {extent}/10"
    # What still grows has no ranges.
    grows = file_response(request, path.open("rb"), None, "text/plain")
    assert (grows.status, dict(grows.headers)) == (200, {})
    assert b"".join(grows.chunks()) == b"0123456789"


def test_the_routes_headers(proxy: CuttingProxy, data: bytes) -> None:
    path, headers = f"{proxy.url}/api/jobs/{JOB}/notebook", {"Authorization": "Bearer ada"}
    whole = httpx.get(path, headers=headers, timeout=60)
    etag = f'"{hashlib.sha256(data).hexdigest()}"'
    assert (whole.status_code, whole.headers["ETag"]) == (200, etag)
    rest = httpx.get(
        path, headers={**headers, "Range": f"bytes={SIZE - 5}-", "If-Range": etag}, timeout=60
    )
    assert (rest.status_code, rest.content) == (206, data[-5:])
    assert io.BytesIO(whole.content).read() == data
