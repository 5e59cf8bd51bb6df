"""Errors of a disk or a network that pass: no job is damaged by them, nor forgotten for good."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path
from typing import Any

import pytest

from jupyter_to_job.backends.memory import MemoryBackend
from jupyter_to_job.cli import waiting
from jupyter_to_job.controller.reconciling import reconciler as reconciler_module
from jupyter_to_job.domain.errors import Unavailable
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.flavors import load_catalog
from jupyter_to_job.service.jobs import JobService, ServiceContext
from jupyter_to_job.service.submitting.submission import Caller

from . import exchanges
from .test_groups_on_a_cluster import World, until

JOB = "train-abcdefgh"
OF_A_NETWORK = [
    errno.ESTALE, errno.ETIMEDOUT, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN,
    errno.ENETUNREACH, errno.ECONNREFUSED, errno.ECONNRESET, errno.ENOTCONN, errno.ESHUTDOWN,
    errno.EREMOTEIO, errno.EKEYEXPIRED,
]  # fmt: skip


@pytest.fixture
def exchange(tmp_path: Path) -> FileExchange:
    made = FileExchange(tmp_path / "exchange")
    exchanges.add(made, JOB, workspace=str(tmp_path))
    return made


def failing(broken: Path, number: int, call: Any) -> Any:
    """Return `call`, which fails for one path."""

    def fail(path: Any, *rest: Any, **options: Any) -> Any:
        if str(path) == str(broken):
            raise OSError(number, os.strerror(number))
        return call(path, *rest, **options)

    return fail


@pytest.mark.parametrize("call", ["lstat", "listdir"])
@pytest.mark.parametrize("number", OF_A_NETWORK, ids=errno.errorcode.__getitem__)
def test_no_job_fails_because_a_network_does(
    exchange: FileExchange,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    call: str,
) -> None:
    assert exchange.jobs() == {JOB}
    core = ServiceContext(exchange, MemoryBackend(exchange), load_catalog)
    jobs = JobService(core, Caller("me", str(tmp_path)))
    where = Path if call == "lstat" else os
    broken = failing(exchange.root / JOB, number, getattr(where, call))
    with monkeypatch.context() as patch:
        patch.setattr(where, call, broken)
        with pytest.raises(Unavailable, match="cannot be read now"):
            jobs.get(JOB)
        with pytest.raises(Unavailable, match="cannot be read now"):
            next(jobs.changes([JOB]))
    assert jobs.get(JOB).reason is None


def test_who_waits_goes_on_when_the_jobs_can_be_listed_again(
    exchange: FileExchange, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchanges.end(exchange.directory(JOB))
    core = ServiceContext(exchange, MemoryBackend(exchange), load_catalog)
    jobs = JobService(core, Caller("me", str(tmp_path)))
    listing, failures = os.listdir, [OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))]

    def fail_once(path: Any) -> list[str]:
        if path == exchange.root and failures:
            raise failures.pop()
        return listing(path)

    monkeypatch.setattr(waiting, "_RETRY_DELAY", 0.0)
    monkeypatch.setattr(os, "listdir", fail_once)
    assert any(job is not None for job in waiting.follow_changes(jobs, [JOB]))
    assert not failures


def test_the_controller_lists_its_jobs_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciler_module, "RESYNC_INTERVAL", 0.01)
    asyncio.run(resync_after_an_error(World(tmp_path), OSError(errno.EIO, os.strerror(errno.EIO))))


async def resync_after_an_error(world: World, error: OSError) -> None:
    listing, failures = world.exchange.jobs, [error]

    def fail_once() -> frozenset[str]:
        if failures:
            raise failures.pop()
        return listing()

    world.exchange.jobs = fail_once  # type: ignore[method-assign]
    async with world.running():
        await until(lambda: len(world.cluster.job_records) == 1)
