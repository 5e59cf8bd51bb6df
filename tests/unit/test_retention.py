"""What a delivered job need not keep goes when its time has come, and nothing else ever does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from job_runner.protocol import documents, layout, liveness
from jupyter_to_job.backends.memory import MemoryBackend
from jupyter_to_job.controller.intake import housekeeping
from jupyter_to_job.controller.intake.budgets import Budgets, Caps
from jupyter_to_job.controller.intake.housekeeping import Housekeeping
from jupyter_to_job.controller.metrics import Metrics
from jupyter_to_job.domain.errors import BadInput, Cleared
from jupyter_to_job.domain.job import Changes, DeliveryState, State
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.exchange.disk_use import bytes_on_disk
from jupyter_to_job.exchange.retention import Policy, enforce
from jupyter_to_job.flavors import load_catalog
from jupyter_to_job.service.jobs import JobService, ServiceContext
from jupyter_to_job.service.submitting.submission import Caller

from ..processes import until
from . import exchanges

DELIVERED = datetime(2026, 11, 21, 9, 32, tzinfo=timezone.utc)
WEEK = Policy(7 * 86400)
JOB = "train-abcdabcd"
POWERLESS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.geteuid() == 0 else ()
"""Goes before a command: root may do as its files' owner only."""
CLEAR_OVER_CAP = """\
import sys
from pathlib import Path
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.exchange.retention import Policy, enforce
print(*enforce(FileExchange(Path(sys.argv[1])), Policy(None, cap=1)))
"""
KEPT = {"request.json", "delivery.json", "attempt-1", "cleared.json"}


def after(**passed: float) -> float:
    return (DELIVERED + timedelta(**passed)).timestamp()


@pytest.fixture
def exchange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileExchange:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    return FileExchange(tmp_path / "exchange")


def service(exchange: FileExchange) -> JobService:
    core = ServiceContext(exchange, MemoryBackend(exchange), load_catalog)
    return JobService(core, Caller("me", "/w"))


def contents(exchange: FileExchange, name: str = JOB) -> set[str]:
    directory = exchange.directory(name)
    return {p.relative_to(directory).as_posix() for p in directory.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    ("settings", "policy"),
    [
        (("7d", ""), Policy(604800)),
        (("90s", "20Gi"), Policy(90, 20 << 30)),
        (("forever", ""), Policy(None)),
        (("0", " "), Policy(0)),
        ((" 1h30m ", "500M"), Policy(5400, 500_000_000)),
    ],
)
def test_settings(settings: tuple[str, str], policy: Policy) -> None:
    assert Policy.parse(*settings) == policy


@pytest.mark.parametrize(
    "settings", [("", ""), ("soon", ""), ("-1", ""), ("7d", "big"), ("7d", "0")]
)
def test_settings_that_mean_nothing(settings: tuple[str, str]) -> None:
    with pytest.raises(BadInput):
        Policy.parse(*settings)


def test_after_its_time_request_and_outcome_are_left(exchange: FileExchange) -> None:
    exchanges.settle(exchange, JOB, packages={"numpy": ["numpy"]})
    (exchange.root / JOB / "attempt-1" / ".0123.tmp").touch()  # what a killed fold had so far
    left_there = exchange.root / JOB / "attempt-1" / layout.SCRATCH / "theirs.csv"
    left_there.parent.mkdir()
    left_there.touch()
    before, whole = service(exchange).get(JOB), contents(exchange)
    assert enforce(exchange, WEEK, after(days=6.9)) == []
    assert contents(exchange) == whole
    assert exchange.request(JOB).packages is not None
    assert enforce(exchange, WEEK, after(days=7)) == [JOB]
    assert exchange.request(JOB).packages is None
    left = contents(exchange)
    assert left == {
        "request.json", "delivery.json", "cleared.json",
        "attempt-1/runner.json", "attempt-1/lock", "attempt-1/outcome.json",
    }  # fmt: skip
    assert enforce(exchange, WEEK, after(days=8)) == []
    job = service(exchange).get(JOB)
    assert job.journal == 0
    assert {**job.to_json(), "journal": 0} == {**before.to_json(), "journal": 0}


def test_what_is_gone_says_so(exchange: FileExchange) -> None:
    exchanges.settle(exchange, JOB)
    enforce(exchange, WEEK, after(days=7))
    jobs = service(exchange)
    for act in (jobs.logs, jobs.journal, jobs.notebook, lambda n: jobs.rerun(n, Changes())):
        with pytest.raises(Cleared) as caught:
            act(JOB)
        assert "Kept for 7 d after delivery; gone since 20" in caught.value.message
        assert f"{JOB}.ipynb" in caught.value.hint
    assert jobs.deliver(JOB).delivery.state is DeliveryState.DELIVERED
    jobs.delete(JOB)
    assert exchange.jobs() == frozenset()


def test_a_result_that_goes_while_it_is_asked_for(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left of the run is not taken for all there was."""
    exchanges.settle(exchange, JOB)

    def meanwhile(exchange: FileExchange, name: str) -> int:
        documents.write_document(
            exchange.root / name / layout.CLEARED, {"time": exchanges.DELIVERED, "message": "Gone"}
        )
        (exchange.root / name / "attempt-1" / layout.RESULT).unlink()
        return 1

    monkeypatch.setattr("jupyter_to_job.service.jobs.find_delivered_attempt", meanwhile)
    with pytest.raises(Cleared):
        service(exchange).notebook(JOB)


def test_for_ever_and_at_once(exchange: FileExchange) -> None:
    exchanges.settle(exchange, JOB)
    assert enforce(exchange, Policy(None), after(days=10_000)) == []
    assert enforce(exchange, Policy(0), after(seconds=1)) == [JOB]


def test_nothing_to_deliver_goes_too(exchange: FileExchange) -> None:
    directory = exchanges.add(exchange, JOB)
    exchanges.end(directory, "failed", result=False)
    assert service(exchange).get(JOB).delivery.state is DeliveryState.NONE
    assert enforce(exchange, WEEK, after(days=6.9)) == []
    assert enforce(exchange, WEEK, after(days=7)) == [JOB]
    job = service(exchange).get(JOB)
    assert (job.state, job.delivery.state) == (State.FAILED, DeliveryState.NONE)


def test_a_run_that_is_about_to_start_again_keeps_its_files(exchange: FileExchange) -> None:
    """It was evicted before anything ran."""
    directory = exchanges.add(exchange, JOB)
    exchanges.end(directory, "failed", result=False)
    ended = {"uid": "p", "node": None, "reason": "Evicted", "message": None, "time": ""}
    documents.write_document(directory / "attempt-1" / layout.POD, {**ended, "retried": True})
    assert enforce(exchange, WEEK, after(days=8)) == []


def test_what_can_never_be_delivered_goes_in_its_time(exchange: FileExchange) -> None:
    """Not before, however full the exchange is: there is no other copy of it."""
    failed = exchanges.add(exchange, JOB)
    exchanges.end(failed)
    held = failed / layout.HELD
    documents.write_document(held, {"message": "The claim is gone.", "failed": True})
    os.utime(held, (after(), after()))
    whole = contents(exchange)
    assert enforce(exchange, Policy(7 * 86400, cap=1), after(days=6.9)) == []
    assert contents(exchange) == whole
    assert enforce(exchange, WEEK, after(days=7)) == [JOB]
    with pytest.raises(Cleared, match="Kept for 7 d after its delivery failed"):
        service(exchange).logs(JOB)


def never_cleared(exchange: FileExchange) -> Iterator[tuple[str, Any]]:
    """Make jobs that are none of retention's business, and something to keep them open."""
    exchanges.add(exchange, "queued-aaaaaaaa")
    yield "queued-aaaaaaaa", None
    running = exchanges.add(exchange, "running-aaaaaaaa")
    yield "running-aaaaaaaa", liveness.claim_attempt(running, 1)
    dead = exchanges.add(exchange, "dead-aaaaaaaa")
    liveness.claim_attempt(dead, 1).release()
    yield "dead-aaaaaaaa", None
    exchanges.end(exchanges.add(exchange, "pending-aaaaaaaa"))
    yield "pending-aaaaaaaa", None
    held = exchanges.add(exchange, "held-aaaaaaaa")
    exchanges.end(held)
    documents.write_document(held / "held.json", {"message": "The folder is gone."})
    yield "held-aaaaaaaa", None
    again = exchanges.settle(exchange, "again-aaaaaaaa")
    yield "again-aaaaaaaa", liveness.claim_attempt(again, 2)
    other = exchanges.add(exchange, "unverified-aaaaaaaa")
    documents.write_document(other / layout.ORIGIN, {"pod": "pod-1"})  # it came by a gateway
    exchanges.end(other)
    exchanges.deliver(other, sha256="0" * 64)
    yield "unverified-aaaaaaaa", None
    (exchanges.settle(exchange, "damaged-aaaaaaaa") / layout.DELIVERY).write_text("{")
    yield "damaged-aaaaaaaa", None


def test_what_is_not_delivered_is_never_touched(exchange: FileExchange) -> None:
    jobs = dict(never_cleared(exchange))
    before = {name: contents(exchange, name) for name in jobs}
    assert enforce(exchange, Policy(0, 1), after(days=10_000)) == []
    assert {name: contents(exchange, name) for name in jobs} == before
    for claim in filter(None, jobs.values()):
        claim.release()


def test_over_the_cap_the_oldest_go_first(exchange: FileExchange) -> None:
    names = [f"train-{letter * 8}" for letter in "abcd"]
    for day, name in enumerate(names):
        directory = exchanges.add(exchange, name)
        exchanges.end(directory)
        exchanges.deliver(directory, moment=f"2026-11-{20 - day}T00:00:00.000Z")
        (directory / layout.INPUTS / "large").write_bytes(b"x" * (1 << 20))
    exchanges.add(exchange, "queued-aaaaaaaa")
    assert enforce(exchange, Policy(None, 5 << 20)) == []
    assert enforce(exchange, Policy(None, (5 << 20) // 2)) == [names[3], names[2]]
    assert enforce(exchange, Policy(None, (5 << 20) // 2)) == []
    with pytest.raises(Cleared, match="over its cap"):
        service(exchange).logs(names[3])
    assert enforce(exchange, Policy(None, 1)) == [names[1], names[0]]
    assert "snapshot.ipynb" in contents(exchange, "queued-aaaaaaaa")


def test_a_file_of_two_jobs_counts_once_and_goes_with_the_second(exchange: FileExchange) -> None:
    """A rerun has its inputs as links."""
    names = [f"train-{letter * 8}" for letter in "abc"]
    for day, name in enumerate(names):
        directory = exchanges.add(exchange, name)
        exchanges.end(directory)
        exchanges.deliver(directory, moment=f"2026-11-{11 + day}T00:00:00.000Z")
        large = directory / layout.INPUTS / "large"
        if day == 1:
            os.link(exchange.directory(names[0]) / layout.INPUTS / "large", large)
        else:
            large.write_bytes(b"x" * (1 << 20))
    assert enforce(exchange, Policy(None, 5 << 19)) == []
    assert enforce(exchange, Policy(None, 3 << 19)) == names[:2]


class Killed(BaseException):
    """The process ends here."""


def test_killed_anywhere_it_is_finished_later(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between any two changes of the disk the job is whole or cleared for every reader."""
    exchanges.settle(exchange, JOB)
    shutil.copytree(exchange.root / JOB, exchange.root / ".whole")
    whole = service(exchange).get(JOB)
    calls = {name: getattr(os, name) for name in ("unlink", "rmdir", "link")}
    steps = 0
    while True:
        left = steps

        def stepwise(name: str, *args: Any, **kwargs: Any) -> Any:
            nonlocal left
            if left == 0:
                raise Killed
            left -= 1
            return calls[name](*args, **kwargs)

        with monkeypatch.context() as patch:
            for name in calls:
                patch.setattr(os, name, lambda *a, _n=name, **k: stepwise(_n, *a, **k))
            try:
                enforce(exchange, WEEK, after(days=7))
                break
            except Killed:
                pass
        job = service(exchange).get(JOB)
        assert (job.state, job.delivery, job.progress) == (
            whole.state, whole.delivery, whole.progress
        )  # fmt: skip
        if (exchange.root / JOB / layout.CLEARED).exists():
            with pytest.raises(Cleared):
                service(exchange).notebook(JOB)
        else:
            assert service(exchange).notebook(JOB).file.read() == exchanges.RESULT
        enforce(exchange, WEEK, after(days=7))
        assert {p.split("/")[0] for p in contents(exchange)} == KEPT
        shutil.rmtree(exchange.root / JOB)
        shutil.copytree(exchange.root / ".whole", exchange.root / JOB)
        steps += 1
    assert steps > 8


def test_a_removal_that_fails_is_tried_again(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchanges.settle(exchange, JOB)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", _refuse)
        assert enforce(exchange, WEEK, after(days=7)) == []
    assert "snapshot.ipynb" in contents(exchange)
    assert enforce(exchange, WEEK, after(days=7)) == [JOB]


def test_what_a_run_has_mounted_is_neither_counted_nor_removed(exchange: FileExchange) -> None:
    exchanges.settle(exchange, JOB)
    disk = exchange.root / JOB / "attempt-1" / layout.SCRATCH / "disk"
    disk.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "none", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting takes root")
    try:
        before = bytes_on_disk(exchange.root)
        (disk / "theirs.csv").write_bytes(b"x" * 100_000)
        assert bytes_on_disk(exchange.root) == before
        exchange.remove(JOB)
        (removed,) = exchange.root.glob(".old-*")
        disk = removed / "attempt-1" / layout.SCRATCH / "disk"
        os.utime(removed, (0, 0))
        exchange.remove_leftovers()
        assert (disk / "theirs.csv").exists()
    finally:
        subprocess.run(["umount", "-l", disk], check=True)
    exchange.remove_leftovers()
    assert not removed.exists()


def test_a_folder_that_a_run_has_closed_keeps_no_job(exchange: FileExchange) -> None:
    """`chmod -R 600` leaves a folder whose entries can be listed, and not looked at."""
    exchanges.settle(exchange, JOB)
    closed = exchange.root / JOB / "attempt-1" / layout.SCRATCH / "closed"
    (closed / "below").mkdir(parents=True)
    closed.chmod(0o600)
    command = (*POWERLESS, sys.executable, "-c", CLEAR_OVER_CAP, str(exchange.root))
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    closed.chmod(0o700)
    assert (ran.stdout, ran.stderr) == (f"{JOB}\n", "")
    assert "snapshot.ipynb" not in contents(exchange)


def test_a_job_whose_folder_is_closed_keeps_no_other(exchange: FileExchange) -> None:
    exchanges.settle(exchange, JOB)
    closed = exchanges.settle(exchange, "closed-aaaaaaaa")
    closed.chmod(0)
    command = (*POWERLESS, sys.executable, "-c", CLEAR_OVER_CAP, str(exchange.root))
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    closed.chmod(0o700)
    assert ran.stdout == f"{JOB}\n", ran.stderr
    assert "snapshot.ipynb" in contents(exchange, closed.name)


def _refuse(*_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied")


def test_a_controller_that_runs_on_removes_what_became_old(
    exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed an hour after the start leaves drafts behind, too."""
    monkeypatch.setattr(housekeeping, "MIN_INTERVAL", 0.01)
    exchange.prepare()
    draft, young = exchange.root / ".new-1", exchange.root / ".new-2"
    draft.mkdir()
    young.mkdir()
    house = Housekeeping(exchange, Budgets(exchange, Caps()), Policy(None), Metrics())
    house.start()
    try:
        os.utime(draft, (0, 0))
        until(lambda: not draft.exists(), "the old draft is removed")
    finally:
        house.stop()
    assert young.is_dir()
