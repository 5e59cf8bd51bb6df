"""Large files on their way to a gateway: in pieces, resumed after cuts, and never sent twice."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from jupyter_to_job.controller.intake import blobs as blobs_module
from jupyter_to_job.controller.intake.blobs import BLOB_TTL, MAX_UPLOAD_TIME, Blobs, collect
from jupyter_to_job.controller.intake.budgets import Caps, blob_folder
from jupyter_to_job.domain.errors import (
    JobsError,
    Stale,
    StorageFull,
    TooLarge,
    Unavailable,
    Withdrawn,
)
from jupyter_to_job.exchange import FileExchange, InputFile, blob_upload, patience
from jupyter_to_job.exchange.blob_upload import BlobSender
from jupyter_to_job.exchange.gateway import Gateway
from jupyter_to_job.exchange.retention import Policy, enforce
from jupyter_to_job.exchange.uploads import Upload

from ..cutting_proxy import CuttingProxy, cutting_proxy
from ..gateways import context_of, serving
from ..ingress import ingress
from . import exchanges

MIB = 1 << 20
SIZE = 20 * MIB + 5
OVERHEAD = MIB // 2
"""Bytes of heads, and of what is in the buffers of a connection that is cut."""


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blob_upload, "PIECE_SIZE", 2 * MIB)
    monkeypatch.setattr(patience, "MIN_DELAY", 0.01)


@pytest.fixture
def exchange(tmp_path: Path) -> FileExchange:
    made = FileExchange(tmp_path / "exchange")
    made.prepare()
    return made


@pytest.fixture
def proxy(exchange: FileExchange) -> Iterator[CuttingProxy]:
    with (
        context_of(exchange) as context,
        serving(context) as url,
        cutting_proxy(url) as made,
    ):
        yield made


@pytest.fixture
def data() -> bytes:
    return os.urandom(SIZE)


def sender(url: str, folder: Path) -> BlobSender:
    token = folder / "token"
    token.write_text("ada")
    return BlobSender(Gateway(url, token), patience.Patience())


def blob_files(exchange: FileExchange) -> dict[str, int]:
    return {file.name: file.stat().st_size for file in exchange.root.glob(".blobs/*/*")}


def test_a_cut_in_the_middle_of_a_piece(
    proxy: CuttingProxy, exchange: FileExchange, data: bytes, tmp_path: Path
) -> None:
    proxy.cut_after_sent(7 * MIB)
    steps: list[int] = []
    digest = sender(proxy.url, tmp_path).send(io.BytesIO(data), SIZE, "it", steps.append)
    assert digest == hashlib.sha256(data).hexdigest()
    assert blob_files(exchange) == {digest: SIZE}
    assert Blobs(exchange.root, "ada").path(digest).read_bytes() == data
    assert sum(steps) == SIZE
    assert proxy.cuts == 1
    assert proxy.sent < SIZE + 2 * MIB + OVERHEAD  # one piece was sent again, at most


@pytest.mark.parametrize("size", [SIZE, MIB])
def test_what_is_there_is_not_sent_again(
    proxy: CuttingProxy, data: bytes, tmp_path: Path, size: int
) -> None:
    for _ in range(3):
        sender(proxy.url, tmp_path).send(io.BytesIO(data), size, "it")
    assert proxy.sent < size + OVERHEAD


def test_another_process_goes_on_where_one_was_killed(
    proxy: CuttingProxy, exchange: FileExchange, data: bytes, tmp_path: Path
) -> None:
    def stop_half_way(_: int) -> None:
        if proxy.sent > SIZE // 2:
            raise Withdrawn("Enough.")

    with pytest.raises(Withdrawn):
        sender(proxy.url, tmp_path).send(io.BytesIO(data), SIZE, "it", stop_half_way)
    (part,) = blob_files(exchange).values()
    assert SIZE // 3 < part < SIZE
    sender(proxy.url, tmp_path).send(io.BytesIO(data), SIZE, "it")
    assert blob_files(exchange) == {hashlib.sha256(data).hexdigest(): SIZE}
    assert proxy.sent < SIZE + OVERHEAD


def test_the_gateway_is_another_one_half_way(
    exchange: FileExchange, data: bytes, tmp_path: Path
) -> None:
    """It is away for a moment in between, as a controller is that was killed."""
    with context_of(exchange) as context, serving(context) as first, cutting_proxy(first) as proxy:
        moved: list[str] = []

        def move(_: int) -> None:
            if proxy.sent > SIZE // 2 and not moved:
                moved.append(proxy.upstream)
                proxy.upstream = "http://127.0.0.1:9"
                proxy.cut_after_sent(1)
            elif moved and proxy.cuts:
                proxy.upstream = second

        with context_of(exchange) as other, serving(other) as second:
            sender(proxy.url, tmp_path).send(io.BytesIO(data), SIZE, "it", move)
        assert moved
        assert proxy.sent < SIZE + 2 * MIB + OVERHEAD
    assert blob_files(exchange) == {hashlib.sha256(data).hexdigest(): SIZE}


def test_a_gateway_that_is_not_there_is_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        sender("http://127.0.0.1:9", tmp_path).send(io.BytesIO(b"x"), 1, "it")


def test_pages_of_an_ingress_while_the_controller_starts(
    proxy: CuttingProxy, exchange: FileExchange, data: bytes, tmp_path: Path
) -> None:
    """Neither ends the upload: not where a file is looked for, nor where a piece of it is sent."""
    digest = hashlib.sha256(data).hexdigest()

    def is_away(request: str, pages: int) -> bool:
        return pages < (2 if request.startswith("HEAD") else 5)

    with ingress(proxy.url, is_away) as made:
        assert sender(made.url, tmp_path).send(io.BytesIO(data), SIZE, "it") == digest
    path = f"/api/blobs/{digest}"
    assert made.pages == {f"HEAD {path}": 2, f"PUT {path}": 5}
    assert blob_files(exchange) == {digest: SIZE}


def test_an_ingress_that_takes_no_pieces_is_named(
    proxy: CuttingProxy, data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # pieces have their real size
    largest = f"{blob_upload.PIECE_SIZE >> 20} MiB"
    with (
        ingress(proxy.url, lambda request, _: request.startswith("PUT"), 413) as made,
        pytest.raises(JobsError, match="than a gateway answered 413") as caught,
    ):
        sender(made.url, tmp_path).send(io.BytesIO(data), SIZE, "it")
    assert largest in caught.value.hint
    assert sum(made.pages.values()) == 1  # it does not pass


def test_a_file_that_is_written_to_meanwhile(
    proxy: CuttingProxy, exchange: FileExchange, data: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "data.bin"
    path.write_bytes(data)
    with path.open("r+b") as file, path.open("r+b") as writer:

        def write(count: int) -> None:
            if count:  # it is hashed already
                writer.seek(SIZE - 10)
                writer.write(b"changed")
                writer.flush()

        with pytest.raises(Stale, match=r"^The input data.bin was written to"):
            sender(proxy.url, tmp_path).send(file, SIZE, "the input data.bin", write)
    assert blob_files(exchange) == {}
    with path.open("rb") as shorter, pytest.raises(Stale):
        path.write_bytes(b"short")
        sender(proxy.url, tmp_path).send(shorter, SIZE, "the input data.bin")


def test_bytes_that_rotted_in_the_exchange(
    proxy: CuttingProxy, exchange: FileExchange, data: bytes, tmp_path: Path
) -> None:
    """They are found by the digest, and the next try sends all."""
    digest = hashlib.sha256(data).hexdigest()
    part = blob_folder(exchange.root, "ada") / f"{digest}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(bytes(4 * MIB))
    with pytest.raises(Stale):
        sender(proxy.url, tmp_path).send(io.BytesIO(data), SIZE, "it")
    assert blob_files(exchange) == {}
    sender(proxy.url, tmp_path).send(io.BytesIO(data), SIZE, "it")
    assert blob_files(exchange) == {digest: SIZE}


def test_all_bytes_were_there_when_the_controller_was_killed(
    proxy: CuttingProxy, exchange: FileExchange, data: bytes, tmp_path: Path
) -> None:
    digest = hashlib.sha256(data).hexdigest()
    part = blob_folder(exchange.root, "ada") / f"{digest}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(data)
    sender(proxy.url, tmp_path).send(io.BytesIO(data), SIZE, "it")
    assert blob_files(exchange) == {digest: SIZE}
    assert proxy.sent < OVERHEAD


def test_nobody_waits_for_another_request(
    proxy: CuttingProxy,
    exchange: FileExchange,
    data: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may take minutes to compute a digest, and threads are few."""
    digest = hashlib.sha256(data).hexdigest()
    part = blob_folder(exchange.root, "ada") / f"{digest}.part"
    part.parent.mkdir(parents=True)
    headers = {"Authorization": "Bearer ada", "Content-Range": f"bytes 0-3/{SIZE}"}
    with part.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        url = f"{proxy.url}/api/blobs/{digest}"
        answer = httpx.put(url, headers=headers, content=data[:4], timeout=60)
        assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE
        assert answer.json()["error"]["code"] == Unavailable.code
        clock = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: file.close())
        monkeypatch.setattr(patience, "time", clock)
        assert sender(proxy.url, tmp_path).send(io.BytesIO(data), SIZE, "it") == digest
        assert file.closed  # it was sent again after a while
    assert blob_files(exchange) == {digest: SIZE}


def test_the_disk_is_full_in_the_middle_of_a_piece(
    proxy: CuttingProxy,
    exchange: FileExchange,
    data: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was written of that piece counts, and the rest is sent when there is room."""
    write = blobs_module._write
    failures: list[int] = []

    def fill(file: io.FileIO, chunk: bytes) -> None:
        if file.tell() > 5 * MIB and len(failures) < 3:
            failures.append(file.tell())
            write(file, chunk[:1000])
            raise OSError(errno.ENOSPC, "No space left on device")
        write(file, chunk)

    monkeypatch.setattr(blobs_module, "_write", fill)
    digest = sender(proxy.url, tmp_path).send(io.BytesIO(data), SIZE, "it")
    assert len(failures) == 3
    assert blob_files(exchange) == {digest: SIZE}
    assert Blobs(exchange.root, "ada").path(digest).read_bytes() == data


def test_two_send_one_file_at_a_time(
    proxy: CuttingProxy, exchange: FileExchange, data: bytes, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(2) as pool:
        send = [
            pool.submit(sender(proxy.url, tmp_path).send, io.BytesIO(data), SIZE, "it")
            for _ in range(2)
        ]
        assert {each.result() for each in send} == {hashlib.sha256(data).hexdigest()}
    assert list(blob_files(exchange).values()) == [SIZE]


def test_what_has_no_room_is_refused_before_it_is_sent(
    exchange: FileExchange, data: bytes, tmp_path: Path
) -> None:
    for caps, error in (
        (Caps(inputs=10 * MIB, reserve=0), TooLarge),
        (Caps(owner=10 * MIB, reserve=0), StorageFull),
        (Caps(reserve=1 << 60), StorageFull),
    ):
        with (
            context_of(exchange, caps) as context,
            serving(context) as url,
            cutting_proxy(url) as proxy,
        ):
            with pytest.raises(error):
                sender(proxy.url, tmp_path).send(io.BytesIO(data), SIZE, "it")
            assert proxy.sent < OVERHEAD


@pytest.mark.parametrize(
    ("content_range", "status"),
    [
        ("bytes 0-3/8", 200),
        ("bytes 4-7/8", 409),
        ("bytes 0-2/8", 400),
        ("bytes 0-3/2", 409),
        ("bytes 0-3/*", 400),
        ("bytes=0-3", 400),
        ("bytes 0-3/99999999999", 413),
    ],
)
def test_the_route(proxy: CuttingProxy, content_range: str, status: int) -> None:
    path = f"{proxy.url}/api/blobs/{'0' * 64}"
    headers = {"Authorization": "Bearer ada", "Content-Range": content_range}
    answer = httpx.put(path, content=b"1234", headers=headers, timeout=60)
    assert answer.status_code == status
    assert status != 200 or answer.json() == {"length": 4}
    assert answer.text.count('"length":0') == (content_range == "bytes 4-7/8")


def test_a_part_goes_when_nothing_comes_any_more(
    proxy: CuttingProxy, exchange: FileExchange
) -> None:
    headers = {"Authorization": "Bearer ada", "Content-Range": "bytes 0-3/8"}
    httpx.put(f"{proxy.url}/api/blobs/{'0' * 64}", content=b"1234", headers=headers, timeout=60)
    (part,) = exchange.root.glob(".blobs/*/*")
    assert collect(exchange.root, part.stat().st_mtime + BLOB_TTL - 1) == 0
    assert collect(exchange.root, part.stat().st_mtime + BLOB_TTL + 1) == 1
    assert blob_files(exchange) == {}


@pytest.mark.parametrize("name", ["later", "later.part"])
def test_a_blob_stays_while_others_of_its_submission_come(
    exchange: FileExchange, name: str
) -> None:
    """The submission at the end names all of them, the first one too."""
    blobs = Blobs(exchange.root, "ada")
    first = hashlib.sha256(b"first").hexdigest()
    blobs.put(first, Upload.of(b"first"))
    blob = blobs.path(first)
    now = blob.stat().st_mtime + 2 * BLOB_TTL
    later = blob.with_name(name)
    later.touch()
    os.utime(later, (now, now))
    assert collect(exchange.root, now + BLOB_TTL - 1) == 0
    assert blobs.snapshot(first) == b"first"
    os.utime(blob, (0, now - MAX_UPLOAD_TIME - 1))  # of a submission long ago
    assert collect(exchange.root, now) == 1
    assert collect(exchange.root, now + BLOB_TTL + 1) == 1
    assert blob_files(exchange) == {}


def test_blobs_of_jobs_leave_room_for_those_of_others(exchange: FileExchange) -> None:
    """Clearing a job frees nothing while a blob is another name of its input."""
    now = time.time()
    folder = blob_folder(exchange.root, "me")
    folder.mkdir(parents=True)
    for hours, letter in enumerate("abcdefghijkl"):
        blob = folder / (letter * 64)
        blob.write_bytes(os.urandom(MIB))

        def write(target: Path, blob: Path = blob) -> InputFile:
            os.link(blob, target)
            return InputFile("a.bin", "", MIB)

        request = exchanges.request(f"mine-{letter * 8}")
        assert exchange.create(request, exchanges.RESULT, {"a.bin": write})
        exchanges.end(exchange.directory(request.name))
        moment = f"2026-11-21T{23 - hours}:32:00.000Z"
        exchanges.deliver(exchange.directory(request.name), moment=moment)
        os.utime(blob, (0, now - hours * BLOB_TTL))
    yours = exchanges.add(exchange, "yours-aaaaaaaa", owner="you")
    exchanges.end(yours)
    exchanges.deliver(yours, moment="2026-11-22T00:00:00.000Z")

    collect(exchange.root, now)
    cleared = enforce(exchange, Policy(None, 6 * MIB))

    assert sorted(blob_files(exchange)) == ["a" * 64, "b" * 64]
    assert cleared == [f"mine-{letter * 8}" for letter in "lkjihgf"]
