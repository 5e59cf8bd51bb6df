"""The loop that tells hooks: full disks, jobs of other hosts, late results."""

from __future__ import annotations

import errno
import fcntl
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from job_runner.protocol import layout
from jupyter_to_job.backends.local.hosts import (
    NOTIFIER_LOCK,
    HostStatus,
    HostWatch,
    host_folder,
)
from jupyter_to_job.domain.errors import Unavailable
from jupyter_to_job.exchange import FileExchange, Request
from jupyter_to_job.exchange.records import NotificationsRecord
from jupyter_to_job.exchange.request import Environment
from jupyter_to_job.notifications import notifier as notifier_module
from jupyter_to_job.notifications.__main__ import host_rule
from jupyter_to_job.notifications.hooks import Hook
from jupyter_to_job.notifications.notifier import Notifier

from ..processes import until
from ..receivers import WebReceiver, receiving_web
from . import exchanges

JOB = "train-abcdefgh"


@pytest.fixture
def web() -> Iterator[WebReceiver]:
    with receiving_web() as receiver:
        yield receiver


@pytest.fixture
def exchange(tmp_path: Path) -> FileExchange:
    return FileExchange(tmp_path)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifier_module, "LOOK_INTERVAL", 0.02)
    monkeypatch.setattr(notifier_module, "RETRY_INTERVAL", 0.1)


def add(
    exchange: FileExchange, *, name: str = JOB, is_delivered: bool = True, **fields: object
) -> None:
    """Record a job that has ended, and of which nobody was told."""
    request = exchanges.request(name, **fields)
    assert exchange.create(request, exchanges.RESULT, notify=True)
    exchanges.end(exchange.directory(name))
    if is_delivered:
        exchanges.deliver(exchange.directory(name))


def notifier(
    exchange: FileExchange,
    web: WebReceiver,
    is_ours: Callable[[Request], bool] = lambda _: True,
) -> Notifier:
    hooks = (Hook.model_validate({"name": "ops", "webhook": web.url(), "retry_after": "1s"}),)
    return Notifier(exchange, lambda: hooks, is_ours)


def is_owed(exchange: FileExchange) -> bool:
    return exchange.has(JOB, layout.NOTIFY)


def test_it_ends_when_all_is_told(exchange: FileExchange, web: WebReceiver) -> None:
    add(exchange)
    notifier(exchange, web).run(lambda: False)
    assert [posted.json["data"]["result"] for posted in web.posted] == [f"{JOB}.ipynb"]
    assert not is_owed(exchange)
    notifier(exchange, web).run(lambda: False)
    assert len(web.posted) == 1


def test_a_try_that_was_cut_off_is_repeated(exchange: FileExchange, web: WebReceiver) -> None:
    add(exchange)
    told = {"hook": "ops", "event": "succeeded", "state": "pending", "tries": 3, "time": "t"}
    exchange.write(JOB, layout.NOTIFICATIONS, {"notifications": [told]})
    notifier(exchange, web).run(lambda: False)
    record = exchange.record(JOB, layout.NOTIFICATIONS, NotificationsRecord)
    assert record is not None
    assert [(n.state, n.tries) for n in record.notifications] == [("sent", 4)]


def test_crashes_do_not_make_tries_endless(exchange: FileExchange, web: WebReceiver) -> None:
    add(exchange)
    told = {"hook": "ops", "event": "succeeded", "state": "pending", "tries": 12, "time": "t"}
    exchange.write(JOB, layout.NOTIFICATIONS, {"notifications": [told]})
    notifier(exchange, web).run(lambda: False)
    record = exchange.record(JOB, layout.NOTIFICATIONS, NotificationsRecord)
    assert record is not None
    (given_up,) = record.notifications
    assert (given_up.state, given_up.tries) == ("given_up", 12)
    assert given_up.message == "The last try was cut off: it may have arrived."
    assert not web.posted
    assert not is_owed(exchange)


def test_on_a_full_disk_nothing_is_told_twice(
    exchange: FileExchange, web: WebReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(exchange)
    exchanges.grow_old(exchange)  # from now on only a change of the directory is news
    write, is_full = exchange.write, threading.Event()
    is_full.set()
    failures = []

    def refuse(*arguments: object) -> None:
        if is_full.is_set():
            failures.append(arguments)
            raise Unavailable("The disk is full.")
        write(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(exchange, "write", refuse)
    stop = threading.Event()
    working = notifier(exchange, web)
    thread = threading.Thread(target=working.run, args=(lambda: not stop.is_set(),))
    thread.start()
    try:
        until(lambda: len(failures) >= 3, "it is tried again")
        assert not web.posted
        is_full.clear()
        until(lambda: not is_owed(exchange), "it is told")
    finally:
        stop.set()
        thread.join(30)
    assert len(web.posted) == 1


def test_the_jobs_of_another_host_are_left_to_it(exchange: FileExchange, web: WebReceiver) -> None:
    add(exchange)
    notifier(exchange, web, lambda _: False).run(lambda: False)
    assert not web.posted
    assert is_owed(exchange)


def test_what_another_host_has_told_is_not_told_again(
    exchange: FileExchange, web: WebReceiver
) -> None:
    """That host is silent afterwards, because nothing is left to do there."""
    add(exchange)
    asked, is_silent, stop, rounds = threading.Event(), threading.Event(), threading.Event(), [0]

    def is_ours(_: Request) -> bool:
        asked.set()
        return is_silent.is_set()

    def stays() -> bool:
        rounds[0] += 1
        return not stop.is_set()

    waiting = threading.Thread(target=notifier(exchange, web, is_ours).run, args=(stays,))
    waiting.start()
    try:
        until(asked.is_set, "it knows the job")
        notifier(exchange, web).run(lambda: False)
        is_silent.set()
        since = rounds[0]
        until(lambda: rounds[0] > since + 5, "it has looked at the job again")
    finally:
        stop.set()
        waiting.join(30)
    assert not waiting.is_alive()
    assert len(web.posted) == 1


def test_what_is_tried_again_is_left_to_a_host_that_is_back(
    exchange: FileExchange, web: WebReceiver
) -> None:
    add(exchange)
    web.status, is_silent = 500, threading.Event()
    is_silent.set()
    working = threading.Thread(
        target=notifier(exchange, web, lambda _: is_silent.is_set()).run, args=(lambda: False,)
    )
    working.start()
    until(lambda: bool(web.posted), "a try")
    is_silent.clear()
    working.join(30)
    assert not working.is_alive()
    web.status = 200
    notifier(exchange, web).run(lambda: False)
    record = exchange.record(JOB, layout.NOTIFICATIONS, NotificationsRecord)
    assert record is not None
    assert [(n.state, n.tries) for n in record.notifications] == [("sent", 2)]
    assert len(web.posted) == 2


def test_a_host_whose_notifier_works_is_not_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It tries again for up to an hour, and its dispatcher has ended long before."""
    monkeypatch.setattr(HostWatch, "status_of", lambda *_: HostStatus.SILENT)
    is_ours = host_rule(tmp_path)
    there = Environment(interpreter="python", variables={}, host="there")
    job = exchanges.request(JOB, environment=there)
    assert is_ours(job)
    folder = host_folder(tmp_path, "there")
    folder.mkdir(parents=True)
    with (folder / NOTIFIER_LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert not is_ours(job)
    assert is_ours(job)


def test_an_end_waits_a_moment_for_its_delivery(
    exchange: FileExchange, web: WebReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifier_module, "DELIVERY_PATIENCE", 0.5)
    add(exchange, is_delivered=False)
    started = time.monotonic()
    notifier(exchange, web).run(lambda: False)
    assert time.monotonic() - started >= 0.5
    assert [posted.json["data"]["result"] for posted in web.posted] == [None]


def test_a_job_that_is_being_deleted_is_not_told_of(
    exchange: FileExchange, web: WebReceiver
) -> None:
    add(exchange)
    exchange.write_once(JOB, layout.DELETE, {"time": "2026-11-21T09:33:00.000Z"})
    notifier(exchange, web).run(lambda: False)
    assert not web.posted


def test_a_damaged_job_keeps_no_other_from_being_told_of(
    exchange: FileExchange, web: WebReceiver
) -> None:
    add(exchange)
    damaged = exchanges.request("damaged-abcdefgh")
    assert exchange.create(damaged, exchanges.RESULT, notify=True)
    (exchange.root / damaged.name / layout.REQUEST).write_text("{")
    notifier(exchange, web).run(lambda: False)
    assert len(web.taken()) == 1


def test_a_removed_hook_gets_nothing_that_waited_for_it(
    exchange: FileExchange, web: WebReceiver
) -> None:
    names = [f"{name}-abcdefgh" for name in "abc"]
    for name in names:
        add(exchange, name=name)
    in_force: list[tuple[Hook, ...]]
    in_force = [(Hook.model_validate({"name": "ops", "webhook": web.url()}),)]
    web.gate.clear()
    working = Notifier(exchange, lambda: in_force[-1], lambda _: True)
    thread = threading.Thread(target=working.run, args=(lambda: False,))
    thread.start()
    until(lambda: all(exchange.has(name, layout.NOTIFICATIONS) for name in names), "all are due")
    in_force.append(())
    web.gate.set()
    thread.join(30)
    assert len(web.posted) == 1
    ends = {}
    for name in names:
        record = exchange.record(name, layout.NOTIFICATIONS, NotificationsRecord)
        assert record is not None
        (found,) = record.notifications
        ends[found.state, found.tries] = found.message
    assert ends == {
        ("sent", 1): None,
        ("given_up", 0): "There is no hook of this name any more.",
    }


@pytest.mark.parametrize(
    ("call", "path", "number"),
    [
        ("lstat", layout.NOTIFY, errno.EIO),
        ("open", layout.REQUEST, errno.EIO),
        ("open", layout.NOTIFICATIONS, errno.ETIMEDOUT),
    ],
)
@pytest.mark.parametrize("is_known", [False, True])
def test_a_moment_of_the_disk_makes_no_job_forgotten(
    exchange: FileExchange,
    web: WebReceiver,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    path: str,
    number: int,
    is_known: bool,
) -> None:
    """The job is new to the notifier at that moment, or known to it as another host's."""
    add(exchange)
    is_ours, is_broken, stop = threading.Event(), threading.Event(), threading.Event()
    asked, failures, work = threading.Event(), [], getattr(os, call)

    def fail(target: object, *rest: object, **options: object) -> object:
        if is_broken.is_set() and str(target).endswith(path):
            failures.append(target)
            raise OSError(number, os.strerror(number))
        return work(target, *rest, **options)

    def ask(_: Request) -> bool:
        asked.set()
        return is_ours.is_set()

    monkeypatch.setattr(os, call, fail)
    monkeypatch.setattr("jupyter_to_job.exchange.stamps.RACY", math.inf)  # all is read each time
    working = notifier(exchange, web, ask)
    thread = threading.Thread(target=working.run, args=(lambda: not stop.is_set(),))
    if is_known:
        thread.start()
        until(asked.is_set, "it knows the job")
    is_broken.set()
    is_ours.set()
    if not is_known:
        thread.start()
    try:
        until(lambda: failures, "it is looked at")
        is_broken.clear()
        until(lambda: not is_owed(exchange), "it is told")
    finally:
        stop.set()
        thread.join(30)
    assert len(web.posted) == 1
