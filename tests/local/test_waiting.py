"""Why a job waits, and when it may start: said of jobs in the queue, and before one is sent."""

from __future__ import annotations

from typing import Any

from .. import notebooks
from ..processes import until
from .cli import Cli


def test_why_a_job_waits(cli: Cli) -> None:
    cli.capacity = "cpu=1,memory=8Gi"
    cli.submit_waiting()
    notebooks.write(cli.workspace / "new.ipynb", "1")
    names = [cli.submit("new.ipynb") for _ in range(3)]
    wait = cli.json("show", names[2])["wait"]
    assert (wait["before"], wait["start"], wait["run"]) == (2, None, None)
    assert wait["needs"] == [{"resource": "cpu", "amount": "1", "free": "0"}]
    shown = cli.run("show", names[2]).stdout
    assert "Needs 1 CPU, none are free; 2 jobs are before it." in shown
    assert "estimated" not in shown  # nothing ever ran
    listed = cli.run("list").stdout
    assert "1 CPU, none are free" in listed and "STARTS" not in listed
    cli.release()
    jobs = cli.json("wait", *names)
    assert [job["wait"] for job in jobs] == [None] * 3


def test_an_estimate_from_earlier_runs(cli: Cli) -> None:
    cli.capacity = "cpu=1,memory=8Gi"
    notebooks.write(cli.workspace / "waits.ipynb", "import time; time.sleep(1.5)")
    for _ in range(2):
        assert cli.run("submit", "waits.ipynb", "--wait").returncode == 0
    cli.submit_waiting()  # the same notebook, which now waits for a file
    first, second = cli.submit("waits.ipynb"), cli.submit("waits.ipynb")

    def wait_of(name: str) -> dict[str, Any]:
        return dict(cli.json("show", name)["wait"])

    # The index takes a job when nothing has happened to it for two seconds.
    until(lambda: wait_of(first)["start"]["runs"] == 2, "both runs count")
    near, far = wait_of(first), wait_of(second)
    assert (near["before"], far["before"]) == (0, 1)
    for wait in (near, far):
        assert wait["start"]["runs"] == 2
        assert 1 < wait["run"]["low"] <= wait["run"]["likely"] <= wait["run"]["high"]
    # Behind it is a whole run.
    assert far["start"]["likely"] - near["start"]["likely"] > 1.5
    assert far["start"]["low"] < far["start"]["likely"] < far["start"]["high"]
    shown = cli.run("show", second).stdout
    assert "starts        in about" in shown
    assert "estimated from 2 earlier runs" in shown
    assert "will run      about" in shown
    assert "STARTS (ESTIMATE)" in cli.run("list").stdout
    cli.release()
    assert cli.run("wait", first, second).returncode == 0
