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
done = []
def halfway(method):
    call = getattr(JobService, method)
    def counted(self, *arguments):
        if len(done) == 2:
            %s
        done.append(call(self, *arguments))
        return done[-1]
    setattr(JobService, method, counted)
for method in ("submit", "rerun", "cancel"):
    halfway(method)
%s
main(prog_name="jupyter-to-job")
"""
"""The command, with what happens at the third job, and what else is different."""
GONE = 'raise Unavailable("The gateway cannot be reached.")'
SLOW = 'print("the third", file=sys.stderr, flush=True); time.sleep(60)'


def script(at_third: str, also: str = "") -> tuple[str, ...]:
    return (sys.executable, "-c", HALFWAY % (at_third, also))


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
    cli.command = script(GONE)
    ran = cli.run(command, *jobs, "--json")
    assert ran.returncode == 5
    told = json.loads(ran.stdout)
    assert [job["rerun_of" if command == "rerun" else "name"] for job in told] == jobs[:2]
    assert ran.stderr == "Error: The gateway cannot be reached.\n"


@pytest.mark.parametrize("option", ["--json", "--wait"])
def test_reruns_that_are_interrupted_are_named(cli: Cli, jobs: list[str], option: str) -> None:
    cli.command = script(SLOW)
    seen = cli.on_terminal("rerun", *jobs, option)
    seen.until_shown("the third")
    seen.press(INTERRUPT)
    text = seen.until_ended()
    assert seen.process.returncode == 130
    assert re.search(r"Return with: jupyter-to-job wait waits-\w{8} a-\w{8}\n", text)
