"""What the controller tells of its disk, whatever becomes of its rounds of tidying up."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from jupyter_to_job.controller.intake import housekeeping
from jupyter_to_job.controller.intake.budgets import Budgets, Caps
from jupyter_to_job.controller.intake.housekeeping import Housekeeping
from jupyter_to_job.controller.metrics import Metrics
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.exchange.retention import Policy

from ..processes import until
from . import exchanges

GIB = 1 << 30
Scrape = Callable[[str], float]


@pytest.fixture
def exchange(tmp_path: Path) -> FileExchange:
    found = FileExchange(tmp_path / "exchange")
    found.prepare()
    return found


@pytest.fixture(autouse=True)
def disk(exchange: FileExchange, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The disk of the exchange; a test changes what is free of it: bytes, and of 1000 inodes."""
    found = {"free": 10 * GIB, "inodes": 1000}
    usage = shutil.disk_usage(exchange.root)._replace(total=20 * GIB)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=found["free"]))
    fields = list(os.statvfs(exchange.root))

    def statvfs(_: object) -> os.statvfs_result:
        fields[5:8] = [1000, found["inodes"], found["inodes"]]
        return os.statvfs_result(fields)

    monkeypatch.setattr(os, "statvfs", statvfs)
    return found


@contextmanager
def keeping(exchange: FileExchange) -> Iterator[Scrape]:
    """Keep house; yield what a scrape has of a metric of the exchange."""
    metrics = Metrics()
    house = Housekeeping(exchange, Budgets(exchange, Caps()), Policy(None), metrics)

    def scraped(name: str) -> float:
        prefix = f"jupyter_to_job_exchange_{name}_bytes "
        lines = generate_latest(metrics.registry).decode().splitlines()
        (line,) = (line for line in lines if line.startswith(prefix))
        return float(line.removeprefix(prefix))

    assert scraped("free") >= scraped("reserve")  # else an alert would begin
    house.start()
    try:
        yield scraped
    finally:
        house.stop()


def test_free_space_is_told_while_the_first_round_takes_long(
    exchange: FileExchange, disk: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def enforce(*_: object) -> list[str]:
        begun.set()
        may_end.wait(30)
        return []

    monkeypatch.setattr(housekeeping, "enforce", enforce)
    monkeypatch.setattr(housekeeping, "DISK_INTERVAL", 0.01, raising=False)
    with keeping(exchange) as scraped:
        try:
            assert begun.wait(30)
            until(lambda: scraped("size") == 20 * GIB, "it has looked at the disk")
            assert (scraped("free"), scraped("reserve")) == (10 * GIB, Caps().reserve)
            disk["free"] = GIB // 2
            until(lambda: scraped("free") == GIB // 2, "it has looked again")
        finally:
            may_end.set()


def test_free_space_is_told_where_tidying_up_fails(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = threading.Event()

    def fail() -> None:
        failed.set()
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(exchange, "remove_leftovers", fail)
    with keeping(exchange) as scraped:
        assert failed.wait(30)
        until(lambda: scraped("free") == 10 * GIB, "it has looked at the disk")


def test_free_space_is_told_while_the_next_round_is_far_away(
    exchange: FileExchange, disk: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "MIN_INTERVAL", 3600.0)
    monkeypatch.setattr(housekeeping, "DISK_INTERVAL", 0.01, raising=False)
    with keeping(exchange) as scraped:
        until(lambda: scraped("free") == 10 * GIB, "it has looked at the disk")
        disk["free"] = GIB // 2
        until(lambda: scraped("free") == GIB // 2, "it has looked again")


def test_a_disk_that_runs_out_of_inodes_is_full(
    exchange: FileExchange, disk: dict[str, int]
) -> None:
    """The alerts go by what is free, and submissions are refused by the same number."""
    disk["inodes"] = 25
    with keeping(exchange) as scraped:
        until(lambda: scraped("free") == GIB // 2, "it has looked at the disk")
        assert scraped("free") < scraped("reserve")


def test_what_owners_use_is_measured_before_all_else(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def remove_leftovers() -> None:
        begun.set()
        may_end.wait(30)

    exchanges.add(exchange, "train-abcdefgh")
    monkeypatch.setattr(exchange, "remove_leftovers", remove_leftovers)
    with keeping(exchange) as scraped:
        try:
            assert begun.wait(30)
            assert scraped("used") > 0
        finally:
            may_end.set()


def test_what_owners_use_is_measured_where_tidying_up_fails(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OSError(errno.EIO, "Input/output error")

    exchanges.add(exchange, "train-abcdefgh")
    monkeypatch.setattr(exchange, "remove_leftovers", fail)
    monkeypatch.setattr(housekeeping, "MIN_INTERVAL", 0.01)
    monkeypatch.setattr(housekeeping, "SHARE", 1)
    with keeping(exchange) as scraped:
        until(lambda: scraped("used") > 0, "it has measured")
        used = scraped("used")
        exchanges.add(exchange, "train-bbbbbbbb")
        until(lambda: scraped("used") > used, "it has measured again")
