"""The dispatcher as a process: one at a time, cheap, and gone when there is nothing to do."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from jupyter_to_job.backends.local import LocalBackend
from jupyter_to_job.backends.local import backend as local_backend
from jupyter_to_job.backends.local.hosts import has_dispatcher, lock_path, take_lock, this_host
from jupyter_to_job.dispatcher.processes import MAX_HELPERS
from jupyter_to_job.domain.errors import Unavailable
from jupyter_to_job.exchange import FileExchange

from .. import notebooks
from ..processes import BOUND, gone, kill, until
from .cli import WAITING_CELL, Cli


def serve(cli: Cli, *options: str, python: str = sys.executable) -> subprocess.Popen[str]:
    """Start a dispatcher by hand; what it logs is its stderr."""
    command = [python, "-m", "jupyter_to_job.dispatcher", str(cli.exchange), *options]
    return subprocess.Popen(command, env=cli.environment, stderr=subprocess.PIPE, text=True)


def test_of_many_started_together_one_stays(cli: Cli) -> None:
    started = [serve(cli, "--idle", "60") for _ in range(6)]
    until(lambda: sum(p.poll() is None for p in started) == 1, "one that stays")
    (stayed,) = (p for p in started if p.poll() is None)
    assert {p.returncode for p in started if p is not stayed} == {0}
    stayed.terminate()
    assert stayed.wait(60) == -signal.SIGTERM
    for process in started:
        process.communicate()


def test_many_submissions_start_one(cli: Cli) -> None:
    cli.capacity = "cpu=1,memory=8Gi"
    notebooks.write(cli.workspace / "waits.ipynb", "import time; time.sleep(60)")
    submits = [cli.start("submit", "waits.ipynb") for _ in range(6)]
    names = [process.communicate(timeout=120)[0].strip() for process in submits]
    assert len(cli.dispatchers()) == 1
    assert cli.run("cancel", *names).returncode == 0
    jobs = cli.json("wait", *names, code=1)
    assert [job["state"] for job in jobs] == ["cancelled"] * 6


def test_it_leaves_when_its_python_is_gone(cli: Cli, tmp_path: Path) -> None:
    """Its environment was moved or removed: a dispatcher of another one goes on."""
    cli.capacity = "cpu=1,memory=8Gi"
    environment = tmp_path / "environment"
    (environment / "bin").mkdir(parents=True)
    for name in ("pyvenv.cfg", "lib", "bin/python"):
        (environment / name).symlink_to(Path(sys.prefix, name))
    dispatcher = serve(cli, "--idle", "60", python=str(environment / "bin" / "python"))
    until(lambda: has_dispatcher(cli.exchange, this_host()), "a dispatcher")
    running, waiting = cli.submit_waiting(), cli.submit("waits.ipynb")
    environment.rename(tmp_path / "moved")
    log = dispatcher.communicate(timeout=BOUND)[1]
    assert f"{environment}/bin/python is gone" in log
    assert cli.run("cancel", waiting).returncode == 0
    assert cli.json("wait", waiting, code=1)["state"] == "cancelled"
    cli.release()
    assert cli.json("wait", running)["state"] == "succeeded"


def test_it_and_its_runs_belong_to_no_terminal(cli: Cli) -> None:
    name = cli.submit_waiting()
    (dispatcher,) = cli.dispatchers()
    for process in (dispatcher, cli.runner(name)):
        assert os.getsid(process.pid) == process.pid
        assert process.terminal() is None
    dispatcher.send_signal(signal.SIGTERM)
    until(lambda: gone(dispatcher), "its end")
    assert cli.json("show", name)["state"] == "running"
    cli.release()
    assert cli.json("wait", name)["state"] == "succeeded"


def test_it_tells_what_it_did_and_no_more(cli: Cli) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "1")
    job = cli.json("submit", "a.ipynb", "--wait")
    for dispatcher in cli.dispatchers():
        kill(dispatcher)
    said = serve(cli, "--idle", "0.2").communicate(timeout=60)[1]
    assert job["name"] not in said


def test_ten_thousand_settled_jobs_cost_nothing(cli: Cli) -> None:
    for number in range(10_000):
        folder = cli.exchange / f"old-{'abcdefgh'[number % 8]}{number:0>7}".translate(LETTERS)
        folder.mkdir(parents=True)
        (folder / "delivery.json").touch()
    assert sum(1 for _ in cli.exchange.iterdir()) == 10_000
    before = os.times()
    process = serve(cli, "--idle", "0", "--capacity", "cpu=1,memory=1Gi")
    process.communicate(timeout=60)
    after = os.times()
    spent = after.children_user + after.children_system
    # The bound is loose for a slow machine: reading ten thousand requests takes far longer.
    assert spent - before.children_user - before.children_system < 3


LETTERS = str.maketrans("0189", "wxyz")
"""Job names end with eight of a-z and 2-7."""


def test_the_run_of_a_removed_job_is_ended(cli: Cli) -> None:
    """Somebody deleted its directory: nobody could see or stop it any more."""
    cli.capacity = "cpu=1,memory=8Gi"
    name = cli.submit_waiting()
    runner = cli.runner(name)
    shutil.rmtree(cli.exchange / name, ignore_errors=True)
    until(lambda: gone(runner), "the end of a run that is not on record")
    cli.release()
    assert cli.json("submit", "waits.ipynb", "--wait")["state"] == "succeeded"


def test_it_leaves_when_its_lock_is_removed(cli: Cli) -> None:
    """Another one may hold the new lock, and would give out the same devices."""
    cli.exchange.mkdir()
    process = serve(cli, "--beat", "0.1", "--idle", "60")
    lock = lock_path(cli.exchange, this_host())
    until(lock.with_name("slots.json").exists, "what it writes at its start")
    shutil.rmtree(lock.parent)
    assert "lock was removed" in process.communicate(timeout=60)[1]


def test_what_was_held_is_delivered_by_a_later_start(cli: Cli) -> None:
    folder, away = cli.workspace / "dir", cli.workspace / "away"
    notebooks.write(folder / "a.ipynb", WAITING_CELL)
    name = cli.submit("dir/a.ipynb")
    cli.until_printed(name, "before")
    folder.rename(away)
    (away / "go").touch()
    job = cli.json("wait", name)
    assert (job["state"], job["delivery"]["state"]) == ("succeeded", "held")
    for dispatcher in cli.dispatchers():
        kill(dispatcher)
    names = [name, *(copy_of(cli, name, number) for number in range(2 * MAX_HELPERS))]
    away.rename(folder)
    said = serve(cli, "--idle", "5").communicate(timeout=60)[1]
    for name in names:
        assert f"{name}: delivered" in said
        assert cli.json("show", name)["delivery"]["state"] == "delivered"


def copy_of(cli: Cli, name: str, number: int) -> str:
    """Put another job with all that belongs to one into the exchange."""
    copied = f"copy-abcdefg{'abcdefgh'[number]}"
    shutil.copytree(cli.exchange / name, cli.exchange / copied)
    path = cli.exchange / copied / "request.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "name": copied}))
    return copied


def test_what_is_held_is_not_tried_all_the_time(cli: Cli) -> None:
    folder, away = cli.workspace / "dir", cli.workspace / "away"
    notebooks.write(folder / "a.ipynb", WAITING_CELL)
    name = cli.submit("dir/a.ipynb")
    cli.until_printed(name, "before")
    folder.rename(away)
    (away / "go").touch()
    held = cli.exchange / name / "held.json"
    until(held.exists, "the first try")
    first = held.stat().st_ino
    notebooks.write(cli.workspace / "b.ipynb", "1")
    for _ in range(2):  # it looks at all jobs more than once until these are delivered
        assert cli.json("submit", "b.ipynb", "--wait")["delivery"]["state"] == "delivered"
    assert held.stat().st_ino == first


def test_old_jobs_are_cleared_when_it_leaves(cli: Cli) -> None:
    cli.variables["JUPYTER_TO_JOB_RETENTION"] = "1s"
    notebooks.write(cli.workspace / "a.ipynb", "1")
    job = cli.json("submit", "a.ipynb", "--wait")
    for dispatcher in cli.dispatchers():
        kill(dispatcher)
    time.sleep(1)  # its retention
    serve(cli, "--idle", "0").communicate(timeout=60)
    directory = cli.exchange / job["name"]
    until(lambda: not (directory / "snapshot.ipynb").exists(), "the snapshot is cleared")
    assert (directory / "attempt-1" / "outcome.json").exists()
    assert cli.result(job).exists()


def test_little_memory_and_little_time(cli: Cli) -> None:
    """Bounds with much room for a busy machine; docs/decisions has what was measured."""
    cli.submit_waiting()
    (dispatcher,) = cli.dispatchers()
    assert dispatcher.memory_info().rss < 50e6
    before = dispatcher.cpu_times()
    time.sleep(3)
    after = dispatcher.cpu_times()
    assert after.user + after.system - before.user - before.system < 0.1 * 3


def test_it_clears_away_what_killed_ones_left(cli: Cli) -> None:
    name = cli.submit_waiting()
    for dispatcher in cli.dispatchers():
        kill(dispatcher)
    folder = lock_path(cli.exchange, this_host()).parent
    left = [folder / "gone-abcd2345.settle.log", folder / ".0123456789abcdef.tmp"]
    for path in left:
        path.touch()
    process = serve(cli, "--idle", "60")
    until(lambda: not any(path.exists() for path in left), "the files are gone")
    until((folder / "slots.json").exists, "it serves")
    assert (folder / f"{name}.run.log").exists()
    process.kill()
    process.communicate()


def test_signals_that_its_starter_blocks_reach_it(cli: Cli) -> None:
    cli.exchange.mkdir()
    blocked = {signal.SIGTERM, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    try:
        process = serve(cli, "--idle", "60")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    folder = lock_path(cli.exchange, this_host()).parent
    until((folder / "slots.json").exists, "it serves")
    process.terminate()
    process.communicate(timeout=20)
    assert process.returncode == -signal.SIGTERM


def job_for(backend: LocalBackend, exchange: Path) -> None:
    """Tell the backend of a job; wait until the dispatcher that it started has failed."""
    try:
        backend.notify("a-job-abcd2345")
    finally:
        until(lambda: not has_dispatcher(exchange, this_host()), "its end")
        until(lambda: all(map(gone, psutil.Process().children())), "its exit status")


def test_one_that_ends_at_once_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = LocalBackend(FileExchange(tmp_path))
    monkeypatch.setattr(sys, "executable", "/bin/false")
    monkeypatch.setattr(local_backend, "_START_TIME", BOUND)
    job_for(backend, tmp_path)
    with pytest.raises(Unavailable, match="ended at once"):
        job_for(backend, tmp_path)
    lock = take_lock(tmp_path, this_host())
    assert lock is not None
    backend.notify("a-job-abcd2345")  # another process's dispatcher is here
    os.close(lock)


def test_one_that_cannot_start_names_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(Unavailable, match="could not be started") as caught:
        LocalBackend(FileExchange(tmp_path)).notify("a-job-abcd2345")
    assert "a-job-abcd2345 is recorded" in caught.value.hint


def test_its_files_are_private(cli: Cli) -> None:
    cli.submit_waiting()
    written = lock_path(cli.exchange, this_host()).with_name("slots.json")
    until(written.exists, "what it writes after it has started the job")
    paths = [cli.exchange / ".dispatcher", *(cli.exchange / ".dispatcher").rglob("*")]
    assert len(paths) > 3
    assert [p for p in paths if p.stat().st_mode & 0o077] == []
    slots = json.loads(written.read_text())
    assert slots["total"]["cpu"] == "2" and len(slots["jobs"]) == 1
