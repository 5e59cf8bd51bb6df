"""The dispatcher's loop: what it does with errors of one job, and with what others hold."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from job_runner.protocol import layout, liveness
from jupyter_to_job.backends.local.hosts import HostWatch, take_lock, this_host
from jupyter_to_job.backends.local.slots import Machine, Slots
from jupyter_to_job.dispatcher import lease as lease_module
from jupyter_to_job.dispatcher import processes, tasks
from jupyter_to_job.dispatcher.launcher import Launcher
from jupyter_to_job.dispatcher.lease import Lease
from jupyter_to_job.dispatcher.loop import POLL_INTERVAL, Dispatcher
from jupyter_to_job.dispatcher.processes import TAKEN_INTERVAL, Processes
from jupyter_to_job.dispatcher.settled import MAX_LOOKS
from jupyter_to_job.exchange import FileExchange, Request
from jupyter_to_job.exchange.request import Environment

from ..processes import BOUND, until
from . import exchanges

JOB = "train-abcdefgh"


def test_a_missing_file_is_no_removed_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Here the file is the dispatcher's Python, with which it would end a cancelled job."""
    exchange = FileExchange(tmp_path)
    directory = exchanges.add(exchange, JOB)
    exchange.write_once(JOB, layout.CANCEL, {"time": exchanges.ENDED})
    dispatcher = Dispatcher(exchange, Machine("cpu=1,memory=1Gi"), "here", HostWatch(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert dispatcher.poll(set())
    assert f"{JOB}: tried again in 10 s" in caplog.text
    caplog.clear()
    shutil.rmtree(directory)
    dispatcher.poll(set())
    assert not dispatcher.has_work()
    assert not caplog.records


def test_a_dead_run_that_another_process_finishes_is_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That process may be killed, too, so it is tried again after a while."""
    exchange, start, started_at = FileExchange(tmp_path), Launcher.start, list[float]()

    def note_and_start(*arguments: Any) -> Any:
        started_at.append(time.monotonic())
        return start(*arguments)

    monkeypatch.setattr(Launcher, "start", note_and_start)
    directory = exchanges.add(exchange, JOB)
    lock = take_lock(tmp_path, this_host())
    assert lock is not None
    lease = Lease(exchange, this_host(), lock)
    machine = Machine("cpu=1,memory=1Gi")
    dispatcher = Dispatcher(exchange, machine, this_host(), HostWatch(tmp_path))

    def pause(seconds: float) -> bool:
        time.sleep(seconds)
        return True

    def serve_until(condition: Callable[[], bool]) -> None:
        end = time.monotonic() + BOUND
        monkeypatch.setattr(lease, "renew", lambda: not condition() and time.monotonic() < end)
        dispatcher.serve(lease, BOUND, pause)
        assert condition()

    liveness.claim_attempt(directory, 1).release()
    other = liveness.take_over(directory / "attempt-1")
    serve_until(lambda: len(started_at) == 2)
    assert started_at[1] - started_at[0] >= TAKEN_INTERVAL
    other.release()
    serve_until((directory / "attempt-1" / layout.OUTCOME).exists)
    os.close(lock)


@pytest.mark.parametrize("is_delivered", [True, False])
def test_a_job_under_the_name_of_a_deleted_one_starts_as_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_delivered: bool
) -> None:
    """A job that is submitted again under its idempotency key has the same name."""
    started = list[Request]()

    def start(_: Processes, request: Request, variables: object) -> None:
        started.append(request)

    monkeypatch.setattr(Processes, "start_runner", start)
    monkeypatch.setattr(Processes, "deliver_or_remove", lambda *_: True)
    exchange = FileExchange(tmp_path)
    for number in range(2 * MAX_LOOKS):
        name = f"old-aaaaa{chr(97 + number // 20)}a{chr(97 + number % 20)}"
        (tmp_path / name).mkdir()
        (tmp_path / name / layout.DELIVERY).touch()
    (exchanges.settle if is_delivered else exchanges.add)(exchange, JOB, parameters={"lr": 1})
    if not is_delivered:
        exchanges.end(exchange.directory(JOB))
    dispatcher = Dispatcher(exchange, Machine("cpu=1,memory=1Gi"), "here", HostWatch(tmp_path))
    dispatcher.poll({JOB})
    assert not started
    exchange.remove(JOB)
    exchanges.add(exchange, JOB, parameters={"lr": 2})
    for _ in range(4):
        dispatcher.poll({JOB})
    assert started[0].parameters == {"lr": 2}


def test_a_job_that_replaces_a_delivered_one_keeps_the_dispatcher(tmp_path: Path) -> None:
    exchange = FileExchange(tmp_path)
    exchanges.settle(exchange, JOB)
    dispatcher = Dispatcher(exchange, Machine("cpu=1,memory=1Gi"), "here", HostWatch(tmp_path))
    assert not dispatcher.has_work()
    exchange.remove(JOB)
    exchanges.add(exchange, JOB)
    assert dispatcher.has_work()


def test_a_folder_that_hangs_holds_up_no_other_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    deliver = tasks.deliver_or_remove

    def deliver_unless_it_hangs(exchange: FileExchange, job: str) -> int:
        if job.startswith("hung-") and not exchange.has(job, layout.DELETE):
            time.sleep(2 * BOUND)
        return deliver(exchange, job)

    monkeypatch.setattr(tasks, "deliver_or_remove", deliver_unless_it_hangs)
    monkeypatch.setattr(processes, "SLOW_SECONDS", 0.0)
    exchange = FileExchange(tmp_path / "exchange")
    place = {"workspace": str(tmp_path)}
    for letter in "abcdefgh":
        name = f"hung-aaaaaaa{letter}"
        folder = "hung" if letter < "e" else "also-hung"
        exchanges.end(exchanges.add(exchange, name, notebook=f"{folder}/a.ipynb", **place))
    here, machine = this_host(), Machine("cpu=1,memory=1Gi")
    dispatcher = Dispatcher(exchange, machine, here, HostWatch(exchange.root))
    dispatcher.poll(set())
    for _ in range(2):
        dispatcher._processes.log_slow_helpers()
    for folder in ("hung", "also-hung"):
        line = f"settle takes over 0 s to {tmp_path}/{folder}, which may hang"
        assert caplog.text.count(line) == 4
    exchanges.end(exchanges.add(exchange, "other-aaaaaaaa", notebook="a.ipynb", **place))
    dead = exchanges.add(exchange, "dead-aaaaaaaa")
    liveness.claim_attempt(dead, 1).release()
    deleted = exchanges.add(exchange, "deleted-aaaaaaaa", notebook="hung/a.ipynb", **place)
    exchanges.end(deleted)
    exchange.write_once("deleted-aaaaaaaa", layout.DELETE, {"time": exchanges.ENDED})
    end = time.monotonic() + BOUND

    def is_done() -> bool:
        delivered = exchange.root / "other-aaaaaaaa" / layout.DELIVERY
        outcome = dead / "attempt-1" / layout.OUTCOME
        return delivered.exists() and outcome.exists() and not deleted.exists()

    try:
        while not is_done() and time.monotonic() < end:
            time.sleep(POLL_INTERVAL)
            dispatcher.poll(dispatcher._processes.reap())
        assert is_done()
    finally:
        for child in dispatcher._processes._helpers.values():
            os.kill(child.process.pid, signal.SIGKILL)


def test_a_deleted_job_stays_while_its_runner_may_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its attempt would begin in a folder that is being removed."""
    monkeypatch.setattr(processes, "KILL_AFTER", 0.5)
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\ntrap '' TERM\ntouch \"$0.runs\"\nsleep 60\n")
    python.chmod(0o700)
    exchange = FileExchange(tmp_path / "exchange")
    environment = Environment(str(python), this_host(), {"PATH": os.environ["PATH"]})
    directory = exchanges.add(exchange, JOB, environment=environment)
    machine, watch = Machine("cpu=1,memory=1Gi"), HostWatch(exchange.root)
    dispatcher = Dispatcher(exchange, machine, this_host(), watch)

    def poll() -> bool:
        dispatcher.poll(dispatcher._processes.reap())
        return dispatcher._processes.has_runner(JOB)

    assert until(poll, "its runner is there")
    until((tmp_path / "python.runs").exists, "it ignores a signal")
    exchange.write_once(JOB, layout.DELETE, {"time": exchanges.ENDED})
    while poll():
        assert directory.exists()
    until(lambda: not (poll() or directory.exists()), "it is removed")


def test_slots_that_cannot_be_written_are_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    written, is_full, now = list[Slots](), True, [1000.0]

    def write(*arguments: Any) -> None:
        if is_full:
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
        written.append(arguments[-1])

    lock = take_lock(tmp_path, "here")
    assert lock is not None
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr(lease_module, "time", clock)
    monkeypatch.setattr(lease_module, "publish_slots", write)
    lease, slots = Lease(FileExchange(tmp_path), "here", lock), Slots(Machine("cpu=1"))
    for _ in range(1000):
        lease.publish_slots(slots)
        now[0] += POLL_INTERVAL
    assert caplog.text.count("the slots are not shown") == 1
    is_full = False
    now[0] += lease_module.RETRY_INTERVAL
    lease.publish_slots(slots)
    assert written == [slots]
    os.close(lock)
