"""Commands for several jobs whose backend goes away halfway: no job is lost sight of."""

from __future__ import annotations

import json
import re
import sys

import pytest

from .. import notebooks
from .cli import Cli
from .terminal import INTERRUPT

HALFWAY = """\
import sys, time
from jupyter_to_job.cli import waiting
from jupyter_to_job.cli.main import main
from jupyter_to_job.domain.errors import Unavailable
from jupyter_to_job.service.jobs import JobService
waiting.GATEWAY_TIMEOUT = 0.5
done = []
def gone(*_):
    raise Unavailable("The gateway cannot be reached.")
def go_away():
    JobService.get = JobService.changes = gone
    gone()
def be_slow():
    print("the third", file=sys.stderr, flush=True)
    time.sleep(60)
def halfway(call):
    def counted(self, *arguments):
        if len(done) == 2:
            AT_THIRD()
        done.append(call(self, *arguments))
        return done[-1]
    return counted
for method in ("submit", "rerun", "cancel"):
    setattr(JobService, method, halfway(getattr(JobService, method)))
main(prog_name="jupyter-to-job")
"""
"""The command, with something else that happens at the third job."""


def halfway(at_third: str) -> tuple[str, ...]:
    return (sys.executable, "-c", HALFWAY.replace("AT_THIRD", at_third))


@pytest.fixture
def jobs(cli: Cli) -> list[str]:
    """Three jobs, the first of which waits for the test."""
    cli.capacity = "cpu=1,memory=8Gi"
    first = cli.submit_waiting()
    for name in "ab":
        notebooks.write(cli.workspace / f"{name}.ipynb", "1")
    return [first, *cli.run("submit", "a.ipynb", "b.ipynb").stdout.split()]


@pytest.mark.parametrize("command", ["rerun", "cancel"])
def test_what_was_done_before_is_told(cli: Cli, jobs: list[str], command: str) -> None:
    cli.command = halfway("go_away")
    ran = cli.run(command, *jobs, "--json")
    assert ran.returncode == 5
    told = json.loads(ran.stdout)
    assert [job["rerun_of" if command == "rerun" else "name"] for job in told] == jobs[:2]
    assert ran.stderr == "Error: The gateway cannot be reached.\n"


@pytest.mark.parametrize("option", ["--json", "--wait"])
def test_reruns_that_are_interrupted_are_named(cli: Cli, jobs: list[str], option: str) -> None:
    cli.command = halfway("be_slow")
    seen = cli.on_terminal("rerun", *jobs, option)
    seen.until_shown("the third")
    seen.press(INTERRUPT)
    text = seen.until_ended()
    assert seen.process.returncode == 130
    assert re.search(r"Return with: jupyter-to-job wait waits-\w{8} a-\w{8}\n", text)


def test_who_submitted_and_cannot_wait_is_told_how_to_return(cli: Cli) -> None:
    for name in "abc":
        notebooks.write(cli.workspace / f"{name}.ipynb", "1")
    cli.command = halfway("go_away")
    ran = cli.run("submit", "a.ipynb", "b.ipynb", "c.ipynb", "--wait", "--json")
    assert (ran.returncode, ran.stdout) == (5, "")
    assert "2 of 3 submitted." in ran.stderr
    assert re.search(r"Return with: jupyter-to-job wait a-\w{8} b-\w{8}\n", ran.stderr)
