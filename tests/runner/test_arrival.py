"""A runner that starts before its job's files are there, as in a pod beside the agent."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from .jobs import BOUND, Job, make_job, notebook, until
from .test_run import OTHER_USER, POWERLESS


@pytest.fixture
def absent(tmp_path: Path, job: Callable[..., Job]) -> Job:
    """A job whose directory is not there."""
    made = job(notebook("print('here')"))
    made.directory.rename(tmp_path / "fetched")
    return made


def is_waiting(pid: int) -> bool:
    """Tell whether a runner has imported all, and handles SIGTERM."""
    caught = re.search(r"^SigCgt:\s+(\w+)", Path(f"/proc/{pid}/status").read_text(), re.M)
    has_handler = caught is not None and bool(int(caught[1], 16) & 1 << (signal.SIGTERM - 1))
    return has_handler and any("zmq" in m.path for m in psutil.Process(pid).memory_maps())


def test_it_runs_as_soon_as_the_files_are_there(absent: Job, tmp_path: Path) -> None:
    process = absent.start("--attempt", "1", "--wait", "60")
    until(lambda: is_waiting(process.pid), "the runner waits")
    assert process.poll() is None
    (tmp_path / "fetched").rename(absent.directory)
    assert process.wait(60) == 0
    assert absent.printed() == "here\n"
    assert absent.outcome().state == "succeeded"


def test_it_waits_for_nothing_that_is_there(job: Callable[..., Job]) -> None:
    made = job(notebook("print('here')"))
    assert made.run("--wait", "60") == 0
    assert made.printed() == "here\n"


def test_files_that_never_come(absent: Job, tmp_path: Path) -> None:
    summary = tmp_path / "summary"
    variables = {"JUPYTER_TO_JOB_TERMINATION_LOG": str(summary)}
    assert absent.run("--attempt", "1", "--wait", "0.2", **variables) == 74
    told = json.loads(summary.read_text())
    assert told["reason"] == "BackendError"
    assert told["message"].startswith("The job's files did not arrive within 0.2 s.")
    assert told["message"] in absent.directory.with_suffix(".log").read_text()
    assert not absent.directory.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give the files to another user")
def test_files_of_another_user_end_it_at_once(job: Callable[..., Job], tmp_path: Path) -> None:
    """As of an agent and a notebook whose images have two users."""
    made = job(notebook("print('never')"))
    made.directory.chmod(0o700)
    os.chown(made.directory, OTHER_USER, OTHER_USER)
    summary = tmp_path / "summary"
    process = made.start(
        *("--attempt", "1", "--wait", "0"),
        before=POWERLESS,
        JUPYTER_TO_JOB_TERMINATION_LOG=str(summary),
    )
    assert process.wait(BOUND) == 74
    told = json.loads(summary.read_text())
    assert told["reason"] == "BackendError"
    assert f"belong to user {OTHER_USER}," in told["message"]
    assert "container runs as user 0, who may not read them" in told["message"]
    assert "runAsUser of dev pods" in told["message"]


def test_a_request_to_stop_ends_the_waiting_at_once(absent: Job) -> None:
    process = absent.start("--attempt", "1", "--wait", "0")
    until(lambda: is_waiting(process.pid), "the runner waits")
    process.terminate()
    assert process.wait(10) == 143
    assert not absent.directory.exists()


def test_without_the_option_it_does_not_wait(absent: Job) -> None:
    assert absent.run() == 2


def test_after_the_waiting_a_stop_saves_all(absent: Job, tmp_path: Path) -> None:
    source = notebook("print('kept', flush=True)\nimport time; time.sleep(600)")
    fetched = make_job(tmp_path / "other", source)
    process = absent.start("--attempt", "1", "--wait", "60")
    fetched.directory.rename(absent.directory)
    until(lambda: absent.attempt().exists() and "kept" in absent.printed(), "the cell has printed")
    process.terminate()
    assert process.wait(60) == 143
    assert (absent.outcome().state, absent.outcome().reason) == ("failed", "Terminated")
