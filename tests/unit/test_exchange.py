"""The exchange as a port: pieces that may be sent again, and nothing outside of a job."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from job_runner.protocol import layout
from job_runner.protocol.journal import journal
from jupyter_to_job.backends.memory import MemoryBackend
from jupyter_to_job.domain.errors import (
    BadInput,
    Conflict,
    Damaged,
    NotFound,
    Unavailable,
    WrongOffset,
)
from jupyter_to_job.domain.state import Placement
from jupyter_to_job.exchange import FileExchange, Request, files, stamps
from jupyter_to_job.exchange.request import Environment, InputFile, UnreadableRequest
from jupyter_to_job.exchange.stamps import StampCache
from jupyter_to_job.service.damage import find_damage
from jupyter_to_job.service.reading.view import JobReader

JOB = "train-abcd2345"


def request(name: str = JOB, flavor: str = "small") -> Request:
    return Request(
        name=name, owner="me", notebook="train.ipynb", source="/w/train.ipynb", workspace="/w",
        flavor=flavor, device="cpu", flavor_spec={}, device_spec={}, demand={"cpu": "1"},
        snapshot_sha256="", submitted="2026-11-21T09:30:00.000Z", backend="memory", digest="",
    )  # fmt: skip


@pytest.fixture
def exchange(tmp_path: Path) -> FileExchange:
    made = FileExchange(tmp_path / "exchange")
    assert made.create(request(), b'{"nbformat": 4, "cells": []}')
    return made


def test_a_process_without_a_descriptor_calls_nothing_damaged(exchange: FileExchange) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        with pytest.raises(Unavailable, match="cannot be read now: Too many open files"):
            exchange.request(JOB)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert exchange.request(JOB) == request()


def test_a_name_is_taken_once(exchange: FileExchange) -> None:
    with ThreadPoolExecutor(8) as pool:
        other = request("other-abcd2345")
        won = list(pool.map(lambda _: exchange.create(other, b"{}"), range(8)))
    assert len([one for one in won if one is not None]) == 1
    assert sorted(p.name for p in exchange.root.iterdir()) == ["other-abcd2345", JOB]


def test_all_of_a_job_survives_the_host_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And all is written before the first file is waited for: one wait takes the others along."""
    seen: list[tuple[str, set[str]]] = []
    sync, rename = os.fsync, Path.rename

    def synced(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        seen.append((path.name, {p.name for p in path.parent.iterdir()}))
        sync(descriptor)

    def renamed(path: Path, target: Path) -> Path:
        seen.append(("the name", set()))
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "rename", renamed)
    root = tmp_path / "exchange"
    assert FileExchange(root).create(request(), b"{}", origin={"pod": "dev"})
    *files, (draft, _), (named, _), (last, _) = seen
    assert {name for name, _ in files} == {layout.SNAPSHOT, layout.ORIGIN, layout.REQUEST}
    assert all(there == {name for name, _ in files} for _, there in files)
    assert draft.startswith(".new-") and (named, last) == ("the name", root.name)


def test_a_request_is_read_back(exchange: FileExchange) -> None:
    assert exchange.request(JOB) == request()
    path = exchange.directory(JOB) / "request.json"
    path.write_text(path.read_text().replace('"v": 1', '"v": 1, "of_a_newer_version": 1'))
    assert exchange.request(JOB) == request()
    path.write_text('{"v": 1, "name": "x"}')
    with pytest.raises(Damaged):
        exchange.request(JOB)


def test_a_name_that_is_used_again_at_once(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another job's request may have the same inode, length and coarse time."""
    monkeypatch.setattr(stamps, "format_stamp", lambda _: "the same")
    for flavor in ("small", "large"):
        assert exchange.create(request("other-abcd2345", flavor), b"{}")
        assert exchange.request("other-abcd2345").flavor == flavor
        exchange.remove("other-abcd2345")


def test_a_job_that_cannot_be_seen_just_now(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not taken for one that does not exist, and does not hide the others."""
    assert exchange.create(request("other-abcd2345"), b"{}")
    assert exchange.jobs() == {JOB, "other-abcd2345"}
    look = Path.lstat

    def fail(path: Path) -> os.stat_result:
        if path == exchange.root / JOB:
            raise OSError(errno.EIO, "Input/output error")
        return look(path)

    monkeypatch.setattr(stamps, "RACY", -1.0)  # as after two seconds
    with monkeypatch.context() as patch:
        patch.setattr(Path, "lstat", fail)
        for read in (exchange.directory, exchange.request):
            with pytest.raises(Damaged, match="Input/output error"):
                read(JOB)
        assert isinstance(exchange.find_request(JOB), UnreadableRequest)
        (damage,) = find_damage(exchange)
        assert damage.mend is None
        fresh = FileExchange(exchange.root)
        assert fresh.jobs() == {"other-abcd2345"}
    assert fresh.jobs() == {JOB, "other-abcd2345"}


def test_put_again_is_harmless_and_other_bytes_are_refused(exchange: FileExchange) -> None:
    path = "attempt-1/artifacts/deep/model.bin"
    exchange.put(JOB, path, b"abc")
    exchange.put(JOB, path, b"abc")
    with pytest.raises(Conflict):
        exchange.put(JOB, path, b"abd")
    assert exchange.read(JOB, path) == b"abc"
    assert (exchange.read(JOB, path, 1), exchange.size(JOB, path)) == (b"bc", 3)
    folders = [p for p in exchange.directory(JOB).rglob("*") if p.is_dir()]
    assert {p.stat().st_mode & 0o777 for p in folders} == {0o700}


def test_append_only_at_the_end(exchange: FileExchange) -> None:
    path = "attempt-1/journal/00000001.jsonl"
    assert exchange.append(JOB, path, 0, b"abc") == 3
    for offset in (0, 4):
        with pytest.raises(WrongOffset) as caught:
            exchange.append(JOB, path, offset, b"def")
        assert caught.value.length == 3
    assert exchange.append(JOB, path, 3, b"def") == 6
    assert exchange.read(JOB, path) == b"abcdef"


def test_what_is_not_there(exchange: FileExchange) -> None:
    assert exchange.read(JOB, "outcome.json") is None
    assert exchange.read(JOB, "missing/outcome.json") is None
    assert exchange.size(JOB, "outcome.json") is None
    with pytest.raises(NotFound):
        exchange.read("other-abcd2345", "request.json")


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../../x", "a\0b", ".."])
def test_no_path_leads_out(exchange: FileExchange, path: str) -> None:
    acts: list[Callable[[], object]] = [
        lambda: exchange.read(JOB, path),
        lambda: exchange.size(JOB, path),
        lambda: exchange.put(JOB, path, b""),
        lambda: exchange.append(JOB, path, 0, b""),
    ]
    for act in acts:
        with pytest.raises(BadInput):
            act()


def test_what_is_recorded_is_what_is_read(tmp_path: Path) -> None:
    """A process that has recorded a job answers without reading it."""
    exchange = FileExchange(tmp_path / "exchange")
    asked = replace(
        request(),
        parameters={"n": [1, 2.5, None], "deep": {"a": "b"}},
        environment=Environment("/usr/bin/python3", "host", {"A": "1"}),
        kernel_spec={"argv": ["python"], "env": {}},
        packages={"numpy": ["numpy"]},
        mounts=("/data",),
        left_behind=("/w: a reason",),
        inputs_asked=("data/*",),
        roots=("/d",),
    )

    def write(target: Path) -> InputFile:
        target.write_bytes(b"data")
        return InputFile("data/a.csv", "", 4)

    recorded = exchange.create(asked, b"{}", {"data/a.csv": write})
    assert recorded is not None and recorded.inputs
    assert exchange.request(JOB) == recorded


def test_a_draft_that_is_swept_where_there_are_no_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It becomes no job: its first input would be missing."""
    exchange = FileExchange(tmp_path / "exchange")

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    def write(target: Path) -> InputFile:
        target.write_bytes(b"data")
        if target.name == "a.csv":
            (draft,) = exchange.root.glob(".new-*")
            os.utime(draft, (0, 0))
            exchange.remove_leftovers()
        return InputFile(f"data/{target.name}", "", 4)

    monkeypatch.setattr(fcntl, "flock", no_locks)
    inputs = {"data/a.csv": write, "data/b.csv": write}
    confirmed: list[bool] = []
    with pytest.raises(Unavailable, match=r"The copy of data/a\.csv was removed before"):
        exchange.create(request(), b"{}", inputs, confirm=lambda: confirmed.append(True))
    assert (list(exchange.root.iterdir()), confirmed) == ([], [])


def test_removed_is_gone_at_once(exchange: FileExchange) -> None:
    exchange.remove(JOB)
    assert exchange.jobs() == frozenset()
    with pytest.raises(NotFound):
        exchange.directory(JOB)
    assert list(exchange.root.iterdir()) == []


def test_threads_that_look_at_once_count_once(tmp_path: Path) -> None:
    """Cells are counted once, however many threads of a server follow the same journal."""
    exchange = FileExchange(tmp_path / "exchange")
    cell = '{"cell_type": "code", "metadata": {}, "outputs": [], "source": "1"}'
    snapshot = f'{{"nbformat": 4, "metadata": {{}}, "cells": [{",".join([cell] * 200)}]}}'
    exchange.create(request(), snapshot.encode())
    backend = MemoryBackend(exchange)
    backend.notify(JOB)
    for _ in range(20):
        view = JobReader(exchange, backend.alive)
        with ThreadPoolExecutor(8) as pool:
            jobs = list(pool.map(lambda _: view.job(request(), Placement()), range(8)))  # noqa: B023
        assert {(j.progress.cells_done, j.progress.cells_total) for j in jobs} == {(200, 200)}


def test_a_first_look_that_takes_long_keeps_no_other_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = FileExchange(tmp_path / "exchange")
    snapshot = b'{"nbformat": 4, "metadata": {}, "cells": []}'
    other = request("other-abcd2345")
    for asked in (request(), other):
        exchange.create(asked, snapshot)
        (exchange.root / asked.name / "attempt-1").mkdir()
    looking, done = threading.Event(), threading.Event()
    read = journal.read_journal

    def slow(directory: Path, *args: Any, **how: Any) -> Iterator[journal.JournalEntry]:
        if JOB in directory.parts:
            looking.set()
            assert done.wait(60)
        return read(directory, *args, **how)

    monkeypatch.setattr(journal, "read_journal", slow)
    view = JobReader(exchange, lambda _name, _attempt: True)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(view.job, request(), Placement())
        assert looking.wait(60)
        assert view.job(other, Placement()).name == other.name
        assert not first.done()
        done.set()
        assert first.result(60).name == JOB


def test_a_run_of_a_name_that_is_used_again(tmp_path: Path) -> None:
    """How far the journal of the one before was read says nothing of this one's."""
    exchange = FileExchange(tmp_path)
    view = JobReader(exchange, lambda *_: True)
    for moment, running in (("2026-11-21T09:30:00Z", True), ("2026-11-21T09:31:00Z", False)):
        exchange.create(replace(request(), submitted=moment), b"{}")
        attempt = exchange.directory(JOB) / "attempt-1"
        attempt.mkdir()
        writer = journal.JournalWriter(attempt / layout.JOURNAL)
        writer.append({"k": "start", "t": 1.0, "v": 1, "kernel": "python3", "sockets": ""})
        if running:
            writer.append({"k": "cell", "t": 1.0, "i": 0, "n": 1})
        writer.close()
        job = view.job(exchange.request(JOB), Placement())
        assert job.journal == journal.journal_size(attempt / layout.JOURNAL)
        exchange.remove(JOB)


def test_a_cache_that_is_full_drops_the_oldest_entry() -> None:
    """Not all at once: then the 1,001st job made everybody read everything again."""
    cache: StampCache[int, int] = StampCache(3)
    read: list[int] = []

    def get(key: int) -> int:
        return cache.get(key, "stamp", lambda: read.append(key) or key)  # type: ignore[func-returns-value]

    for key in (1, 2, 3, 4, 4, 3, 2):
        assert get(key) == key
    assert read == [1, 2, 3, 4]
    assert (get(1), read[-1]) == (1, 1)


def test_large_requests_leave_the_memory_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each names the packages of an environment: those of all jobs ever would fill the memory."""
    monkeypatch.setattr(stamps, "RACY", -1.0)
    monkeypatch.setattr(files, "CACHED_REQUESTS", 100_000)
    exchange = FileExchange(tmp_path / "exchange")
    modules = {"train-aaaaaaaa": 4_000, "train-bbbbbbbb": 4_000, "train-cccccccc": 4_000}
    for name, count in {"train-dddddddd": 20_000, **modules}.items():
        packages = {"everything": ["module"] * count}
        exchange.create(replace(request(), name=name, packages=packages), b"{}")

    first, second, third = (exchange.request(name) for name in modules)
    huge = exchange.request("train-dddddddd")

    assert exchange.request(third.name) is third
    assert exchange.request(second.name) is second
    assert exchange.request(huge.name) is not huge
    assert exchange.request(first.name) is not first
