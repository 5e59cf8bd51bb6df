"""Jobs that cannot be run as they are: each ends with a reason, and none stops the others."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import job_runner
from jupyter_to_job.backends.local.hosts import lock_path, this_host

from .. import notebooks
from ..processes import until
from .cli import Cli


def submit_with(cli: Cli, **changed: Any) -> str:
    """Submit a job whose request is changed before a dispatcher sees it."""
    cli.capacity = "cpu=1,memory=8Gi"
    blocking = cli.submit_waiting()
    name = cli.submit("waits.ipynb")
    path = cli.exchange / name / "request.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))
    for dispatcher in cli.dispatchers():
        dispatcher.kill()
    cli.release()
    assert cli.json("wait", blocking)["state"] == "succeeded"
    return name


@pytest.mark.parametrize(
    ("interpreter", "says"),
    [("/nowhere/bin/python", "No such file"), ("/bin/false", "exit status 1")],
)
def test_the_runner_cannot_be_started(cli: Cli, interpreter: str, says: str) -> None:
    name = submit_with(cli, environment={"interpreter": interpreter, "variables": {}})
    job = cli.json("wait", name, code=1)
    assert (job["state"], job["reason"]) == ("failed", "RunnerMissing")
    assert says in job["message"]
    assert job["delivery"]["state"] == "none"
    assert job["started"] is None and not any((job["usage"] or {}).values())
    assert cli.results(name) == []


def test_an_upgrade_fails_no_waiting_job(cli: Cli, tmp_path: Path) -> None:
    """While pip replaces the package, no runner starts: here its main module is away."""
    package = tmp_path / "packages" / "job_runner"
    shutil.copytree(Path(job_runner.__file__).parent, package)
    path = [str(package.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    cli.variables["PYTHONPATH"] = os.pathsep.join(path)
    cli.capacity = "cpu=1,memory=8Gi"
    running = cli.submit_waiting()
    cli.variables["LC_ALL"] = "C"  # unlike the dispatcher's: these runners are no forks of it
    waiting = [cli.submit("waits.ipynb") for _ in range(3)]
    main = package / "__main__.py"
    main.rename(main.with_suffix(".away"))
    cli.release()
    log = lock_path(cli.exchange, this_host()).with_name("log")
    until(lambda: "did not start" in log.read_text(), "a start that failed")
    main.with_suffix(".away").rename(main)
    jobs = cli.json("wait", running, *waiting)
    assert [job["state"] for job in jobs] == ["succeeded"] * 4


def test_a_job_that_needs_more_than_there_is_stops_nobody(cli: Cli) -> None:
    name = submit_with(cli, demand={"cpu": "1000"})
    assert cli.json("submit", "waits.ipynb", "--wait")["state"] == "succeeded"
    job = cli.json("show", name)
    assert (job["state"], job["reason"], job["position"]) == ("queued", "Unschedulable", None)
    assert "1000 CPUs" in job["message"] and "1 CPU." in job["message"]
    assert cli.run("cancel", name).returncode == 0
    assert cli.json("wait", name, code=1)["state"] == "cancelled"


def test_a_damaged_job_stops_nobody(cli: Cli) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "1")
    damaged = cli.exchange / "damaged-abcd2345"
    damaged.mkdir(parents=True)
    (damaged / "request.json").write_text("{")
    assert cli.json("submit", "a.ipynb", "--wait")["state"] == "succeeded"
    assert {job["reason"] for job in cli.json("list")} == {None, "Damaged"}
    shown = cli.run("show", damaged.name)
    assert shown.returncode == 0 and "cannot be read" in shown.stdout
    checked = cli.run("doctor", "--fix", "--yes")
    assert f"{damaged.name}: {damaged.name}/request.json cannot be read" in checked.stdout
    assert not damaged.exists() and len(cli.json("list")) == 1


def test_what_doctor_mends_goes_on(cli: Cli) -> None:
    """An outcome that cannot be read keeps no slot, and is written anew; moved jobs come back."""
    cli.capacity = "cpu=1,memory=8Gi"
    notebooks.write(cli.workspace / "a.ipynb", "print('ran')")
    names = [cli.json("submit", "a.ipynb", "--wait")["name"] for _ in range(2)]
    damaged, moved = (cli.exchange / name for name in names)
    (damaged / "attempt-1" / "outcome.json").write_text("{")
    (damaged / "delivery.json").unlink()
    moved.rename(cli.exchange / "moved-abcd2345")
    assert cli.json("submit", "a.ipynb", "--wait")["state"] == "succeeded"  # the slot is free
    jobs = {job["name"]: job["reason"] for job in cli.json("list")}
    assert jobs[damaged.name] == jobs["moved-abcd2345"] == "Damaged"
    checked = cli.run("doctor")
    assert checked.returncode == 1 and "from the journal" in checked.stdout
    cli.run("doctor", "--fix", "--yes")
    for name in names:
        job = cli.json("wait", name)
        assert (job["state"], job["delivery"]["state"]) == ("succeeded", "delivered")
        assert notebooks.printed(cli.result(job)) == "ran\n"
    assert "none damaged" in cli.run("doctor").stdout


def test_a_finish_that_cannot_write_is_tried_again(cli: Cli, tmp_path: Path) -> None:
    """Its disk is no disk for a while: here the result's name is taken by a folder."""
    name = cli.submit_waiting()
    attempt = cli.exchange / name / "attempt-1"
    (attempt / "result.ipynb" / "occupied").mkdir(parents=True)
    cli.runner(name).kill()
    log = lock_path(cli.exchange, this_host()).with_name("log")
    until(lambda: "tried again" in log.read_text(), "a try that failed")
    assert cli.json("show", name)["delivery"] == {"state": "pending", "path": None, "message": None}
    os.utime(attempt / "lock", (0, 0))  # a long time passes
    waiting = cli.start("wait", name)
    assert waiting.stderr is not None
    told = waiting.stderr.readline()
    assert "cannot be put together" in told and "doctor" in told
    said = cli.run("doctor").stdout
    assert f"{name}: its runner is gone" in said and "finish failed, tried again" in said
    (attempt / "result.ipynb" / "occupied").rmdir()
    (attempt / "result.ipynb").rmdir()
    job = cli.json("wait", name, code=1)
    assert (job["reason"], job["delivery"]["state"]) == ("Lost", "delivered")
    assert notebooks.printed(cli.result(job)) == "before\n"


def test_a_run_whose_files_are_removed_ends(cli: Cli) -> None:
    """It says what happened, and gives its slot to others."""
    name = cli.submit_waiting()
    runner = cli.runner(name)
    shutil.rmtree(cli.exchange / name / "attempt-1")
    job = cli.json("wait", name, code=1)
    assert (job["state"], job["reason"]) == ("failed", "BackendError")
    assert "removed the files of the run" in job["message"]
    assert not runner.is_running()
