"""An exchange that cannot be written to: said so, nothing half made, and good again afterwards."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from job_runner.protocol import layout
from job_runner.protocol.journal.journal import JournalWriter, journal_size
from job_runner.protocol.result import result
from job_runner.protocol.result.spool import Spool
from jupyter_to_job.api import ApiRequest, handle
from jupyter_to_job.backends.memory import MemoryBackend
from jupyter_to_job.cli import exits
from jupyter_to_job.domain.errors import JobsError, Unavailable
from jupyter_to_job.domain.job import Changes, Submission
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.flavors import load_catalog
from jupyter_to_job.service.jobs import JobService, ServiceContext
from jupyter_to_job.service.submitting.submission import Caller

from .. import full_disks, notebooks
from ..held_backend import HeldBackend


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MiB."""
    with full_disks.small_disk(tmp_path / "disk", "1m") as disk:
        yield disk


@pytest.fixture
def service(disk: Path, tmp_path: Path) -> JobService:
    exchange = FileExchange(disk / "exchange")
    notebooks.write(tmp_path / "workspace" / "a.ipynb", "1")
    core = ServiceContext(exchange, HeldBackend(exchange, hold="queued"), load_catalog)
    return JobService(core, Caller("me", str(tmp_path / "workspace")))


def fill(disk: Path) -> Path:
    rest = disk / "rest"
    with rest.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    return rest


def files(disk: Path) -> set[Path]:
    return {p for p in disk.rglob("*") if ".keys" not in p.parts}


def test_a_disk_without_hard_links(service: JobService, monkeypatch: pytest.MonkeyPatch) -> None:
    """No run could ever record its end there: it is refused at once, and nothing is left."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(Unavailable, match="no hard links"):
        service.submit(Submission("a.ipynb"))
    assert service.find().jobs == []


@pytest.mark.parametrize("key", [None, "once"])
def test_a_full_disk(service: JobService, disk: Path, key: str | None) -> None:
    asked = Submission("a.ipynb", idempotency_key=key)
    earlier = service.submit(Submission("a.ipynb"))[0].name
    rest = fill(disk)
    before = files(disk)
    for act in (
        lambda: service.submit(asked),
        lambda: service.rerun(earlier, Changes()),
        lambda: service.cancel(earlier),
        lambda: service.delete(earlier),
    ):
        with pytest.raises(Unavailable, match="disk is full") as caught:
            act()
        assert exits.code_of_error(caught.value) == exits.UNREACHABLE
    answer = handle(service, ApiRequest("POST", "jobs", body=b'{"notebook": "a.ipynb"}'))
    assert (answer.status, "Retry-After" in answer.headers) == (503, True)
    assert files(disk) == before
    rest.unlink()
    job, created = service.submit(asked)
    assert created and service.get(job.name) == job
    assert service.get(earlier).cancel_requested is False


def test_inputs_that_are_too_large_for_the_disk(service: JobService, disk: Path) -> None:
    workspace = disk.parent / "workspace"
    (workspace / "small").write_bytes(b"x" * 4096)
    (workspace / "large").write_bytes(b"x" * (2 << 20))
    with pytest.raises(Unavailable, match="disk is full"):
        service.submit(Submission("a.ipynb", inputs=("small", "large")))
    assert list((disk / "exchange").iterdir()) == []


def test_an_exchange_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "exchange").touch()
    notebooks.write(tmp_path / "a.ipynb", "1")
    exchange = FileExchange(tmp_path / "exchange")
    core = ServiceContext(exchange, MemoryBackend(exchange), load_catalog)
    with pytest.raises(JobsError, match="cannot be written to") as caught:
        JobService(core, Caller("me", str(tmp_path))).submit(Submission("a.ipynb"))
    assert "doctor" in caught.value.hint


def test_a_spool_is_as_it_was_where_the_disk_was_full(disk: Path) -> None:
    spool = Spool.in_folder(disk)
    first = spool.append(b"first")
    rest = fill(disk)
    with pytest.raises(OSError, match="No space"):
        spool.append(b"x" * 100_000)
    assert b"".join(spool.read(first)) == b"first"
    rest.unlink()
    second = spool.append(b"second")
    assert (b"".join(spool.read(first)), b"".join(spool.read(second))) == (b"first", b"second")
    assert second.offset == first.end
    spool.close()


def test_a_result_where_there_is_no_room_for_a_spool(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small one is made in memory; a large one when there is space again."""
    attempt = layout.attempt_dir(disk, 1)
    attempt.mkdir()
    writer = JournalWriter(attempt / layout.JOURNAL)
    output = {"output_type": "stream", "name": "stdout", "text": "x" * 99_999 + "\n"}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}
    writer.append({"k": "prepared", "cells_total": 0, "notebook": notebook})
    for _ in range(4):
        writer.append({"k": "output", "i": 0, "output": output})
    writer.close()
    size = journal_size(attempt / layout.JOURNAL)
    monkeypatch.setattr(result, "_IN_MEMORY", size - 1)
    with pytest.raises(OSError, match="No space"):
        result.write_result(disk, attempt)
    assert [path.name for path in attempt.iterdir()] == [layout.JOURNAL]
    assert result.room_for(size) == 2 * size
    monkeypatch.setattr(result, "_IN_MEMORY", size)
    assert result.write_result(disk, attempt).sha256 is not None
    (cell,) = json.loads((attempt / layout.RESULT).read_bytes())["cells"]
    assert len(cell["outputs"][0]["text"]) == 4
    assert result.room_for(size) == size
