"""Who says that an attempt lives: on this host, on another, after a reboot, with numbers reused."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from job_runner.protocol import documents, layout, liveness
from job_runner.protocol.journal.journal import JournalWriter
from job_runner.protocol.times import from_unix

from .jobs import Job, notebook, until
from .test_killed import LONG, kept, stop

Make = Callable[..., Job]


def died(job: Job, *, beat: float = 0.0, **runner: object) -> Path:
    """An attempt whose runner is gone: last touched `beat` seconds ago, with changed runner.json"""
    claim = liveness.claim_attempt(job.directory, 1)
    attempt = claim.directory
    writer = JournalWriter(attempt / layout.JOURNAL)
    writer.append({"k": "start", "t": time.time() - beat - 5})
    writer.close()
    claim.release()
    described = documents.read_document(attempt / layout.RUNNER) or {}
    documents.write_document(attempt / layout.RUNNER, {**described, **runner})
    moment = time.time() - beat
    os.utime(attempt / layout.LOCK, (moment, moment))
    return attempt


def test_a_free_lock_of_this_host_is_a_death(job: Make) -> None:
    assert not liveness.is_alive(died(job(LONG)))


def test_another_hosts_run_lives_while_it_beats(job: Make) -> None:
    elsewhere = job(LONG)
    attempt = died(elsewhere, host="elsewhere", beat=liveness.HEARTBEAT_TIMEOUT - 20)
    assert liveness.is_alive(attempt)
    assert elsewhere.finish() == 75
    assert [r["k"] for r in elsewhere.records()] == ["start"]
    moment = time.time() - liveness.HEARTBEAT_TIMEOUT - 1
    os.utime(attempt / layout.LOCK, (moment, moment))
    assert not liveness.is_alive(attempt)
    assert elsewhere.finish() == 0
    assert elsewhere.outcome().reason == "Lost"
    assert elsewhere.outcome().finished < from_unix(time.time() - 60)


def test_another_hosts_run_that_ended_does_not_live_on(job: Make) -> None:
    ended = job(notebook("1"))
    assert ended.run() == 0
    runner = ended.attempt() / layout.RUNNER
    documents.write_document(runner, {**(documents.read_document(runner) or {}), "host": "other"})
    os.utime(ended.attempt() / layout.LOCK)
    assert not liveness.is_alive(ended.attempt())
    assert ended.finish() == 0


def test_a_finish_that_fails_does_not_keep_the_next_one_waiting(job: Make) -> None:
    elsewhere = job(LONG)
    attempt = died(elsewhere, host="elsewhere", beat=liveness.HEARTBEAT_TIMEOUT + 1)
    (attempt / layout.RESULT / "occupied").mkdir(parents=True)
    assert elsewhere.finish() == 74
    assert not (attempt / layout.OUTCOME).exists()
    (attempt / layout.RESULT / "occupied").rmdir()
    (attempt / layout.RESULT).rmdir()
    assert elsewhere.finish() == 0
    assert elsewhere.outcome().reason == "Lost"


def test_a_number_that_belongs_to_somebody_else_by_now(job: Make) -> None:
    """Neither taken for the runner, nor touched."""
    bystander = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        killed = job(LONG)
        attempt = died(killed, pid=bystander.pid)
        writer = JournalWriter(attempt / layout.JOURNAL)
        writer.append({"k": "kernel", "t": time.time(), "pid": bystander.pid})
        writer.close()
        runner = documents.read_document(attempt / layout.RUNNER) or {}
        assert not liveness.is_same_process(runner)
        assert not liveness.is_alive(attempt)
        assert killed.finish() == 0
        assert killed.outcome().reason == "Lost"
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_after_a_reboot_nobody_is_who_they_were(job: Make) -> None:
    long = job(LONG)
    process = long.start()
    until(kept(long), "output")
    runner = documents.read_document(long.attempt() / layout.RUNNER) or {}
    assert liveness.is_same_process(runner)
    assert not liveness.is_same_process({**runner, "boot_id": "of another boot"})
    stop(process)
    assert not liveness.is_alive(died(job(LONG), boot_id="of another boot", pid=process.pid))


@pytest.mark.parametrize("runner", [{}, {"pid": None}, {"pid": "1"}, {"host": 3}])
def test_what_describes_nobody_is_nobody(runner: dict[str, object]) -> None:
    here = liveness.describe_process()
    assert not liveness.is_same_process(runner)
    assert not liveness.is_same_process({**here, **runner, "start_time": None})


def test_a_runner_beats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "HEARTBEAT_INTERVAL", 0.05)
    claim = liveness.claim_attempt(tmp_path, 1)
    lock = claim.directory / layout.LOCK
    os.utime(lock, (0, 0))
    with claim.keep_heartbeat():
        until(lambda: lock.stat().st_mtime > time.time() - 60, "a beat")
    claim.release()


def test_a_runner_that_is_told_to_stop_shows_that_it_heard(job: Make) -> None:
    """Killed afterwards, it is known to have lived when it was cancelled."""
    long = job(LONG)
    process = long.start()
    until(kept(long), "output")
    lock = long.attempt() / layout.LOCK
    os.utime(lock, (0, 0))
    process.terminate()
    until(lambda: lock.stat().st_mtime > time.time() - 60, "a beat")
    process.wait(timeout=30)


@pytest.mark.parametrize(
    ("reason", "is_now"), [("Lost", False), ("Evicted", False), ("Terminated", True)]
)
def test_finished_is_the_last_sign_of_life(job: Make, reason: str, is_now: bool) -> None:
    """A cancel that came later did not end it; but who ended it, ended it now."""
    killed = job(LONG)
    died(killed, beat=3600)
    began = from_unix(time.time() - 1)
    assert killed.finish("--reason", reason) == 0
    outcome = killed.outcome()
    assert outcome.started is not None and outcome.started < outcome.finished
    assert (outcome.finished > began) is is_now
    assert outcome.finished > from_unix(time.time() - 3700)


def test_looking_writes_nothing(job: Make) -> None:
    attempt = died(job(LONG))
    (attempt / layout.LOCK).chmod(0o400)
    before = (attempt / layout.LOCK).stat()
    assert not liveness.is_alive(attempt)
    (attempt / layout.LOCK).unlink()
    assert not liveness.is_alive(attempt)
    assert not (attempt / layout.LOCK).exists()
    assert before.st_size == 0
