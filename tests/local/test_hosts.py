"""Two hosts on one exchange: each has a dispatcher, and neither judges the other's runs wrongly."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from jupyter_to_job.backends.local import hosts

from .. import notebooks
from ..processes import end_all, kill, until
from .cli import COMMAND, WAITING_CELL, Cli

OTHER = "other-host"
RENAMED = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', OTHER]
"""Runs a command on a host of another name: a namespace of its own, on the same kernel."""


@pytest.fixture
def other_host(cli: Cli) -> Cli:
    if shutil.which("unshare") is None or subprocess.call([*RENAMED, "true"]) != 0:
        pytest.skip("no second host here: `unshare --uts` is not allowed (it needs root)")
    cli.capacity = "cpu=1,memory=8Gi"
    return replace(cli, command=(*RENAMED, COMMAND), variables={})


def dispatcher_of(cli: Cli, host: str) -> psutil.Process:
    """Return the one whose log is the host's."""
    log = str(hosts.host_folder(cli.exchange, host) / hosts.LOG)
    (found,) = (d for d in cli.dispatchers() if str(Path(f"/proc/{d.pid}/fd/2").readlink()) == log)
    return found


def runs_on(cli: Cli, job: str) -> str:
    return str(json.loads((cli.exchange / job / "attempt-1" / "runner.json").read_text())["host"])


def start_quick_dispatcher(cli: Cli) -> subprocess.Popen[bytes]:
    """Start a dispatcher here that takes over silent hosts' jobs soon."""
    command = [sys.executable, "-m", "jupyter_to_job.dispatcher", str(cli.exchange)]
    options = ["--capacity", cli.capacity, "--silence", "1", "--beat", "0.2", "--idle", "0.5"]
    return subprocess.Popen([*command, *options], env=cli.environment)


def make_old(path: Path, seconds: float) -> None:
    os.utime(path, (time.time() - seconds,) * 2)


def test_each_host_runs_its_own(cli: Cli, other_host: Cli) -> None:
    here = cli.submit_waiting()
    there = other_host.submit_waiting()  # at once: each host has a slot
    second = other_host.submit("waits.ipynb")
    assert (runs_on(cli, here), runs_on(cli, there)) == (socket.gethostname(), OTHER)
    assert cli.json("show", second)["position"] == 1
    kill(dispatcher_of(cli, socket.gethostname()))
    assert [job["state"] for job in cli.json("list", "--state", "running")] == ["running"] * 2
    cli.release()
    jobs = cli.json("wait", here, there, second)
    assert [job["state"] for job in jobs] == ["succeeded"] * 3
    assert runs_on(cli, second) == OTHER


def test_a_wish_is_the_other_hosts_to_fulfil(cli: Cli, other_host: Cli) -> None:
    there = other_host.submit_waiting()
    assert cli.run("cancel", there).returncode == 0
    assert cli.json("wait", there, code=1)["state"] == "cancelled"
    until(lambda: len(cli.dispatchers()) == 1, "the end of what signs")
    (only,) = cli.dispatchers()  # nobody started a second one for that
    assert only == dispatcher_of(cli, OTHER)


def test_a_silent_hosts_jobs_are_taken_over(cli: Cli, other_host: Cli) -> None:
    running = other_host.submit_waiting()
    waiting = other_host.submit("waits.ipynb")
    kill(dispatcher_of(cli, OTHER))
    make_old(hosts.lock_path(cli.exchange, OTHER), 60)
    assert OTHER in cli.json("show", waiting)["message"]
    for dispatcher in cli.dispatchers():
        kill(dispatcher)
    serving = start_quick_dispatcher(cli)
    cli.release()
    until(lambda: (cli.exchange / waiting / "delivery.json").exists(), "the one taken over")
    assert runs_on(cli, waiting) == socket.gethostname()
    assert runs_on(cli, running) == OTHER
    jobs = cli.json("wait", running, waiting)
    assert [job["state"] for job in jobs] == ["succeeded", "succeeded"]
    assert serving.wait(60) == 0


def test_a_dead_run_of_a_silent_host_is_finished(cli: Cli, other_host: Cli) -> None:
    name = other_host.submit_waiting()
    kill(dispatcher_of(cli, OTHER))
    kill(cli.runner(name))
    serving = start_quick_dispatcher(cli)
    time.sleep(2)  # longer than it takes over after; the run's own lock was touched just now
    assert cli.json("show", name)["state"] == "running"
    make_old(cli.exchange / name / "attempt-1" / "lock", 600)
    job = cli.json("wait", name, code=1)
    assert (job["state"], job["reason"]) == ("failed", "Lost")
    assert notebooks.printed(cli.result(job)) == "before\n"
    assert serving.wait(60) == 0


def test_what_cannot_run_here_waits_for_its_host(cli: Cli, other_host: Cli) -> None:
    notebooks.write(cli.workspace / "waits.ipynb", WAITING_CELL)
    other_host.submit_waiting()
    name = other_host.submit("waits.ipynb")
    kill(dispatcher_of(cli, OTHER))
    path = cli.exchange / name / "request.json"
    request = json.loads(path.read_text())
    request["environment"]["interpreter"] = "/only/there/python"
    path.write_text(json.dumps(request))
    serving = start_quick_dispatcher(cli)
    cli.release()
    assert serving.wait(60) == 0  # it leaves, though the job is there
    assert not (cli.exchange / name / "attempt-1").exists()
    assert cli.json("show", name)["state"] == "queued"
    end_all(cli.exchange)
