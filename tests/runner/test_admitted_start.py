"""The container of a job's notebook executes nothing of its claims before the run is admitted.

The command is that of the pod's manifest, with a folder of this machine for the pod's own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil
import pytest

import job_runner
from jupyter_to_job.backends.kubernetes.start_command import start_command

from ..processes import until
from .jobs import Job, names, notebook
from .test_run import OTHER_USER, POWERLESS

MARKING = "import pathlib; pathlib.Path({!r}).touch()\n"


class Container:
    """A container whose home, working directory and variables are folders of a claim."""

    def __init__(self, claim: Path, job: Job) -> None:
        self.claim, self.job = claim, job
        self.mark = claim / "executed"
        self.processes: list[subprocess.Popen[bytes]] = []
        (claim / "bin").mkdir(parents=True)
        for program in ("python3", "sleep", "date"):
            path = claim / "bin" / program
            path.write_text(f'#!/bin/sh\n: > {self.mark}\nexec {sys.executable} "$@"\n')
            path.chmod(0o755)
        for module in ("job_runner.py", "sitecustomize.py", "signal.py"):
            (claim / module).write_text(MARKING.format(str(self.mark)))

    def start(self, timeout: int = 60, before: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        fields = start_command(str(self.job.directory), timeout, waits_for_admission=True)
        variables = {
            "PATH": f"{self.claim}/bin:{os.environ['PATH']}",
            "HOME": str(self.claim),
            "PYTHONPATH": str(self.claim),
        }
        process = subprocess.Popen(
            [*before, *fields["command"], *fields["args"]],
            cwd=self.claim,
            env={**os.environ, **variables},
            stderr=(self.claim / "log").open("ab"),
        )
        self.processes.append(process)
        return process

    def has_looked(self) -> bool:
        """Tell whether the container waits: it sleeps, or has had a minute of the claim's code."""
        children = psutil.Process(self.processes[-1].pid).children()
        return self.mark.exists() or "sleep" in names(children)


@pytest.fixture
def container(tmp_path: Path, job: Callable[..., Job]) -> Iterator[Container]:
    made = job(notebook("print('here')"))
    made.directory.rename(tmp_path / "fetched")
    container = Container(tmp_path / "claim", made)
    yield container
    for process in container.processes:
        process.kill()
        process.wait()


def test_nothing_of_a_claim_is_executed_before_the_files_come(
    container: Container, tmp_path: Path
) -> None:
    process = container.start()
    until(container.has_looked, "it waits")
    assert not container.mark.exists()
    # From now on the claim is known to be the user's own, and may have the runner itself.
    for module in ("job_runner.py", "signal.py"):
        (container.claim / module).unlink()
    (tmp_path / "fetched").rename(container.job.directory)
    assert process.wait(60) == 0
    assert container.mark.exists()
    assert container.job.outcome().state == "succeeded"


def test_files_that_never_come(container: Container) -> None:
    assert container.start(timeout=1).wait(60) == 74
    told = json.loads((container.claim / "log").read_text())
    assert told["reason"] == "BackendError"
    assert told["message"].startswith("The job's files did not arrive within 1 s.")
    assert not container.mark.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give the files to another user")
def test_files_of_another_user_end_it_at_once(container: Container, tmp_path: Path) -> None:
    """The runner tells it: the claim is admitted by then."""
    for module in ("job_runner.py", "signal.py"):
        (container.claim / module).unlink()
    (container.claim / "job_runner").symlink_to(Path(job_runner.__file__).parent)
    os.chown(tmp_path / "fetched", OTHER_USER, OTHER_USER)
    (tmp_path / "fetched").chmod(0o700)
    (tmp_path / "fetched").rename(container.job.directory)
    assert container.start(timeout=0, before=POWERLESS).wait(60) == 74
    assert f"belong to user {OTHER_USER}," in (container.claim / "log").read_text()


def test_a_request_to_stop_ends_the_waiting_at_once(container: Container) -> None:
    process = container.start(timeout=0)
    until(container.has_looked, "it waits")
    process.terminate()
    assert process.wait(10) == 143
    assert not container.mark.exists()
