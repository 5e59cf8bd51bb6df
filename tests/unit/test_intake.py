"""What the gateway takes in, over real sockets: from whom, how much, how fast, in what memory."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import socket
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from jupyter_to_job.controller.intake.budgets import Budgets, Caps
from jupyter_to_job.controller.intake.intake import IncomingBody, Intake
from jupyter_to_job.domain.errors import JobsError
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.exchange.uploads import MAX_IN_MEMORY

from ..gateways import NOBODY, context_of, own_process, serving
from ..processes import until

MIB = 1 << 20
CHUNK = b"\0" * MIB
ALLOWED = 20 * MIB
"""How much more memory the gateway may ever have, whatever comes."""
PROMISED = 0.2 if os.environ.get("JUPYTER_TO_JOB_STRICT") else 2.0
"""Seconds for a small answer; ten times as many where others use the machine, too."""


@pytest.fixture(scope="module")
def exchange(tmp_path_factory: pytest.TempPathFactory) -> FileExchange:
    made = FileExchange(tmp_path_factory.mktemp("intake") / "exchange")
    made.prepare()
    return made


@pytest.fixture(scope="module")
def gateway(exchange: FileExchange) -> Iterator[tuple[str, int]]:
    with own_process(exchange) as found:
        # What is only imported or made once is no memory of the bodies.
        httpx.get(f"{found[0]}/api/jobs", headers=bearer("ada"), timeout=60).raise_for_status()
        upload(found[0], b"warm")
        yield found


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def upload(url: str, data: bytes) -> httpx.Response:
    path = f"{url}/api/blobs/{hashlib.sha256(data).hexdigest()}"
    return httpx.put(path, content=data, headers=bearer("ada"), timeout=60)


def forget_peak(pid: int) -> int:
    """Make the memory that a process has now its peak, and return it in bytes."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return peak_memory(pid)


def peak_memory(pid: int) -> int:
    """Return the most memory that a process had at a time, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) << 10


@contextmanager
def connection(url: str, head: str) -> Iterator[socket.socket]:
    """Send the head of a request, and yield its connection."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as made:
        made.sendall(head.replace("\n", "\r\n").encode() + b"\r\n\r\n")
        yield made


def answer_of(made: socket.socket) -> tuple[int, bytes]:
    """Return status and body of an answer after which the server closes the connection."""
    data = b""
    while True:
        try:
            piece = made.recv(65536)
        except ConnectionResetError:  # it had not read all that was sent
            break
        if not piece:
            break
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    assert b"connection: close" in head.lower()
    return int(head.split()[1]), body


def send_body(url: str, head: str, size: int) -> tuple[int, int]:
    """Send a body without waiting for an answer; return the status, and how much was taken."""
    sent = 0
    with connection(url, f"{head}\nHost: gateway\nContent-Length: {size}") as made:
        try:
            while sent < size:
                sent += made.send(CHUNK)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return answer_of(made)[0], sent


@pytest.mark.parametrize("token", [None, NOBODY])
def test_nobody_unknown_sends_a_body(gateway: tuple[str, int], token: str | None) -> None:
    url, pid = gateway
    before = forget_peak(pid)
    routes = ["PUT /api/blobs/" + "0" * 64, "POST /api/jobs", "GET /api/events", "PUT /elsewhere"]
    routes += ["GET /api/health", "POST /api/events", "PUT /api/exchange/a/b", "POST /"]
    known = f"\nAuthorization: Bearer {token}" if token else ""
    heads = [f"{route} HTTP/1.1{known}" for route in routes]
    with ThreadPoolExecutor(len(heads)) as pool:
        answers = list(pool.map(lambda head: send_body(url, head, 128 * MIB), heads))
    assert [status for status, _ in answers] == [403, 403, 403, 404, 403, 403, 403, 404]
    # What the operating system's buffers hold is all that was sent.
    assert max(sent for _, sent in answers) < 16 * MIB
    assert peak_memory(pid) - before < ALLOWED


@pytest.mark.parametrize("route", ["GET /api/jobs", "HEAD /api/jobs", "GET /elsewhere"])
def test_a_refusal_says_that_the_connection_is_closed(gateway: tuple[str, int], route: str) -> None:
    """Else a client sends its next request on it, and that one is reset."""
    with connection(gateway[0], f"{route} HTTP/1.1\nHost: gateway") as made:
        assert answer_of(made)[0] in (403, 404)


@pytest.mark.parametrize("route", ["POST /api/jobs", "OPTIONS /api/jobs", "PUT /elsewhere"])
def test_who_sends_a_small_body_hears_why_it_is_refused(
    gateway: tuple[str, int], route: str
) -> None:
    """A connection that is closed before it was read would be reset, and the answer lost."""
    with connection(gateway[0], f"{route} HTTP/1.1\nHost: gateway\nContent-Length: 65536") as made:
        for size in (1000, 60000, 4536):
            made.settimeout(0.2)
            with pytest.raises(TimeoutError):
                made.recv(1)
            made.sendall(b"x" * size)
        made.settimeout(30)
        answer = b"".join(iter(lambda: made.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 40")
    assert b'"error"' in answer


def test_a_body_without_a_declared_length(gateway: tuple[str, int]) -> None:
    url, pid = gateway
    before = forget_peak(pid)

    def chunks(count: int) -> Iterator[bytes]:
        for _ in range(count):
            yield CHUNK

    nobody = httpx.post(f"{url}/api/jobs", content=chunks(128), headers=bearer(NOBODY), timeout=60)
    assert nobody.status_code == 403
    path = f"{url}/api/exchange/a/attempt-1/runner.json"
    over = httpx.put(path, content=chunks(128), headers=bearer("ada"), timeout=60)
    assert (over.status_code, over.json()["error"]["code"]) == (413, "too_large")
    assert peak_memory(pid) - before < ALLOWED


def test_a_declared_length_over_the_limit_is_refused_at_once(gateway: tuple[str, int]) -> None:
    head = "POST /api/jobs HTTP/1.1\nAuthorization: Bearer ada\nHost: a\nContent-Length: 999999999"
    with connection(gateway[0], head) as made:  # and no byte of the body
        status, body = answer_of(made)
    assert (status, json.loads(body)["error"]["code"]) == (413, "too_large")


@pytest.mark.parametrize(
    ("route", "size", "status"),
    [
        ("PUT blobs/" + "0" * 64, 5 << 30, 413),
        ("PUT exchange/a/delivery.json", 5 * MIB, 413),
        ("POST jobs/a/cancel", MIB, 413),
        ("GET jobs", MIB, 413),
        ("DELETE jobs/a", MIB, 413),
    ],
)
def test_each_route_has_its_limit(
    gateway: tuple[str, int], route: str, size: int, status: int
) -> None:
    method, path = route.split()
    head = f"{method} /api/{path} HTTP/1.1\nAuthorization: Bearer ada"
    assert send_body(gateway[0], head, size)[0] == status


def test_an_agent_sends_only_pieces(gateway: tuple[str, int]) -> None:
    head = "PUT /api/blobs/" + "0" * 64 + " HTTP/1.1\nAuthorization: Bearer a-job/pod-1"
    assert send_body(gateway[0], head, 128 * MIB)[0] == 404


@pytest.mark.parametrize("caps", [Caps(reserve=1 << 60), Caps(reserve=0, owner=1)])
def test_a_dev_pod_fills_no_disk_with_bodies_of_other_routes(tmp_path: Path, caps: Caps) -> None:
    """Nobody has looked yet whether there is such a job, and whose it is."""
    exchange = FileExchange(tmp_path)
    exchange.prepare()
    head = "PUT /api/exchange/nosuch-aaaaaaaa/{} HTTP/1.1\nAuthorization: Bearer ada\nHost: a"
    piece = head.format("attempt-1/journal/x")
    report = f"{head.format('delivery.json')}\nContent-Length: {4 * MIB}"

    def has_received(size: int) -> bool:
        """Ask the gateway: a file shows only what was flushed to it."""
        return context.intake.budgets.incoming("ada") == size

    def is_empty() -> bool:
        return has_received(0) and not list(tmp_path.glob(".incoming/*"))

    def call(method: str, url: str, data: bytes) -> int:
        return httpx.request(method, url, headers=bearer("ada"), content=data).status_code

    with context_of(exchange, caps) as context, serving(context) as url:
        with connection(url, f"{piece}\nContent-Length: {8 * MIB}") as made:
            assert answer_of(made)[0] == 413  # and no byte of the body was sent
        assert is_empty()
        with connection(url, report) as first, connection(url, report) as second:
            for count, made in enumerate((first, second), 1):  # a report needs no room, ...
                made.sendall(CHUNK * 3)
                until(partial(has_received, count * 3 * MIB), "the body is written")
            with connection(url, report) as third:  # ... but many at a time do
                status, body = answer_of(third)
            assert (status, json.loads(body)["error"]["code"]) == (507, "storage_full")
            assert call("POST", f"{url}/api/jobs/a-aaaaaaaa/cancel", b"{}") == 404
        until(is_empty, "the bodies of closed connections are gone")
        assert call("PUT", f"{url}/api/exchange/nosuch-aaaaaaaa/delivery.json", CHUNK) == 404


def test_a_large_blob_in_little_memory(gateway: tuple[str, int], exchange: FileExchange) -> None:
    url, pid = gateway
    before, size = forget_peak(pid), 200 * MIB
    digest = hashlib.sha256()
    for _ in range(size // MIB):
        digest.update(CHUNK)
    path = f"{url}/api/blobs/{digest.hexdigest()}"
    headers = {**bearer("ada"), "Content-Length": str(size)}
    for _ in range(2):  # sending it again is harmless
        body = (CHUNK for _ in range(size // MIB))
        response = httpx.put(path, content=body, headers=headers, timeout=120)
        assert (response.status_code, response.json()) == (200, {"length": size})
    assert peak_memory(pid) - before < ALLOWED
    assert [f.stat().st_size for f in exchange.root.glob(f".blobs/*/{digest.hexdigest()}")] == [
        size
    ]
    assert list((exchange.root / ".incoming").iterdir()) == []
    head = httpx.head(path, headers=bearer("ada"))
    assert (head.status_code, head.headers["Content-Length"]) == (200, str(size))
    assert httpx.head(path, headers=bearer("eve")).status_code == 409  # she did not send it


@pytest.mark.parametrize("size", [10, 3 * MIB])
def test_a_wrong_digest_leaves_nothing(
    gateway: tuple[str, int], exchange: FileExchange, size: int
) -> None:
    before = list(exchange.root.glob(".blobs/*/*"))
    path = f"{gateway[0]}/api/blobs/{'0' * 64}"
    response = httpx.put(path, content=b"x" * size, headers=bearer("ada"), timeout=60)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "bad_input")
    assert list(exchange.root.glob(".blobs/*/*")) == before
    assert list(exchange.root.glob(".incoming/*")) == []


@pytest.mark.parametrize("name", ["", "x", "../../other", "A" * 64])
def test_a_blob_is_named_by_a_digest(gateway: tuple[str, int], name: str) -> None:
    response = httpx.put(
        f"{gateway[0]}/api/blobs/{name}", content=b"x", headers=bearer("ada"), timeout=60
    )
    assert response.status_code in (400, 404)


def test_a_body_that_stops_coming(tmp_path: Path) -> None:
    exchange = FileExchange(tmp_path)
    head = f"PUT /api/blobs/{'0' * 64} HTTP/1.1\nAuthorization: Bearer ada\nHost: a\n"
    with own_process(exchange, idle_timeout=0.5) as (url, _):
        with connection(url, head + f"Content-Length: {5 * MIB}") as made:
            with suppress(BrokenPipeError, ConnectionResetError):  # it may be closed already
                made.sendall(b"x" * MIB)
            status, body = answer_of(made)
        assert (status, json.loads(body)["error"]["code"]) == (408, "timed_out")
        assert list(exchange.root.glob(".incoming/*")) == []
        with connection(url, head + "Transfer-Encoding: chunked") as made:
            assert answer_of(made)[0] == 408
        parts = urlsplit(url)
        with socket.create_connection((parts.hostname, parts.port), timeout=30) as made:
            made.sendall(b"GET /api/health HTTP/1.1\r\n")  # and nothing more
            assert made.recv(100) == b""


def test_a_body_that_takes_for_ever(tmp_path: Path) -> None:
    head = f"PUT /api/blobs/{'0' * 64} HTTP/1.1\nAuthorization: Bearer ada\nHost: a\n"
    with (
        own_process(FileExchange(tmp_path), idle_timeout=5, timeout=1) as (url, _),
        connection(url, head + "Content-Length: 1000") as made,
    ):
        begun = time.monotonic()
        made.settimeout(0.1)
        answer = b""
        while not answer and time.monotonic() - begun < 20:
            try:
                made.sendall(b"x")
                answer = made.recv(65536)
            except TimeoutError:
                continue
        assert answer.startswith(b"HTTP/1.1 408")


def test_a_client_that_goes_away_leaves_nothing(
    gateway: tuple[str, int], exchange: FileExchange
) -> None:
    head = f"PUT /api/blobs/{'0' * 64} HTTP/1.1\nAuthorization: Bearer ada\nHost: a\n"
    with connection(gateway[0], head + f"Content-Length: {50 * MIB}") as made:
        made.sendall(CHUNK * 2)
        deadline = time.monotonic() + 20
        while not list(exchange.root.glob(".incoming/*")) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert list(exchange.root.glob(".incoming/*"))
    while list(exchange.root.glob(".incoming/*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert list(exchange.root.glob(".incoming/*")) == []


def test_a_body_that_cannot_be_written_counts_for_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    budgets = Budgets(FileExchange(tmp_path), Caps())
    body = IncomingBody(
        Intake(tmp_path, budgets, ThreadPoolExecutor(1), 30.0, 600.0), MIB, "ada", is_blob=False
    )

    def fill(_: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    body.write(b"x" * 100)
    monkeypatch.setattr(body.upload, "_begin_draft", fill)
    with pytest.raises(JobsError):
        body.write(b"x" * MAX_IN_MEMORY)
    body.close()
    assert budgets.incoming("ada") == 0


def test_small_answers_beside_large_bodies(gateway: tuple[str, int]) -> None:
    url, pid = gateway
    before = forget_peak(pid)
    head = "PUT /api/blobs/" + "0" * 64 + " HTTP/1.1\nConnection: close\nAuthorization: Bearer ada"
    seconds: list[float] = []
    with ThreadPoolExecutor(4) as pool, httpx.Client(headers=bearer("ada"), timeout=60) as client:
        bodies = [pool.submit(send_body, url, head, 128 * MIB) for _ in range(4)]
        while not all(body.done() for body in bodies) or len(seconds) < 100:
            begun = time.monotonic()
            client.get(f"{url}/api/jobs").raise_for_status()
            seconds.append(time.monotonic() - begun)
            time.sleep(0.01)
        assert [body.result()[0] for body in bodies] == [400] * 4  # they have another digest
    assert statistics.quantiles(seconds, n=100)[98] < PROMISED
    assert peak_memory(pid) - before < ALLOWED
