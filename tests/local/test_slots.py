"""Slots: as many jobs at a time as fit, the others in line, none forgotten."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from .. import notebooks
from ..processes import kill, until
from .cli import Cli


def test_the_second_job_waits_for_the_slot(cli: Cli) -> None:
    cli.capacity = "cpu=1,memory=8Gi"
    first = cli.submit_waiting()
    second = cli.submit("waits.ipynb")
    shown = cli.json("show", second)
    assert (shown["state"], shown["position"]) == ("queued", 1)
    assert cli.json("show", first)["position"] is None
    cli.release()
    jobs = cli.json("wait", first, second)
    assert [job["state"] for job in jobs] == ["succeeded", "succeeded"]
    assert jobs[0]["finished"] <= jobs[1]["started"]


def test_the_line_is_by_priority_then_by_time(cli: Cli) -> None:
    cli.capacity = "cpu=1,memory=8Gi"
    cli.submit_waiting()
    notebooks.write(cli.workspace / "a.ipynb", "1")
    low, early, late, high = (
        cli.submit("a.ipynb", "--priority", priority) for priority in ("-1", "0", "0", "5")
    )
    places = {job["name"]: job["position"] for job in cli.json("list", "--state", "queued")}
    assert places == {high: 1, early: 2, late: 3, low: 4}
    assert cli.run("cancel", low, early, late).returncode == 0
    cli.release()
    jobs = cli.json("wait", low, early, late, high, code=1)
    assert [job["state"] for job in jobs] == ["cancelled"] * 3 + ["succeeded"]


def test_twenty_at_once(cli: Cli) -> None:
    cli.capacity = "cpu=4,memory=64Gi"
    notebooks.write(cli.workspace / "a.ipynb", notebooks.parameters("n = -1"), "print(n)")
    submits = [cli.start("submit", "a.ipynb", "-p", "n", str(n)) for n in range(20)]
    names = []
    for process in submits:
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, err
        names.append(out.strip())
    assert len(set(names)) == 20
    jobs: list[dict[str, Any]] = cli.json("wait", *names)
    assert {job["state"] for job in jobs} == {"succeeded"}
    printed = [notebooks.printed(cli.result(job)) for job in jobs]
    assert printed == [f"{n}\n" for n in range(20)]
    assert len(list(cli.workspace.iterdir())) == 21


def test_the_dispatcher_leaves_and_comes_back(cli: Cli) -> None:
    name = cli.submit_waiting()
    kill(*cli.dispatchers())
    command = [sys.executable, "-m", "jupyter_to_job.dispatcher", str(cli.exchange)]
    serving = subprocess.Popen([*command, "--idle", "5"], stderr=subprocess.PIPE)
    cli.release()
    _, said = serving.communicate(timeout=60)
    assert serving.returncode == 0
    assert f"{name}: delivered" in said.decode()
    until(lambda: cli.dispatchers() == [], "the end of what signs its result")
    assert cli.json("submit", "waits.ipynb", "--wait")["state"] == "succeeded"
