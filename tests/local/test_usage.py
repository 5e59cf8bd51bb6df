"""What a job used and which flavor suits it, as the command line tells it."""

from __future__ import annotations

import re

from .. import notebooks
from ..processes import until
from .cli import Cli

LONG_ENOUGH = "import time; time.sleep(10.5)"
HUNGRY = "held = []\nwhile True: held.append(bytearray(b'x') * (50 << 20))"


def test_a_smaller_flavor_would_have_been_enough(cli: Cli) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "x = 1", LONG_ENOUGH)
    ran = cli.run("submit", "a.ipynb", "-f", "medium", "--wait")
    assert ran.returncode == 0, ran.stderr
    said = r" used 0\.\d of 2 CPU on average, [\d.]+ of 8 GiB of memory at most; (.*)\.\n"
    told = re.search(said, ran.stderr)
    assert told is not None, ran.stderr
    assert told[1] == "flavor small would have been enough"
    (job,) = cli.json("list")
    assert job["usage"]["wall"] > 10
    assert (job["usage"]["enough"], job["usage"]["larger"]) == ("small", None)
    shown = cli.run("show", job["name"]).stdout
    assert re.search(r"memory +[<\d.]+ of 8 GiB at most, [<\d.]+ of 8 GiB on average\n", shown)
    assert re.search(r"advice +flavor small would have been enough\n", shown)


def test_a_flavor_with_more_memory(cli: Cli) -> None:
    notebooks.write(cli.workspace / "a.ipynb", HUNGRY)
    ran = cli.run("submit", "a.ipynb", "-f", "small", "--wait")
    assert ran.returncode == 1
    assert re.search(r"of 2 GiB of memory at most; flavor medium has more memory\.\n", ran.stderr)
    (job,) = cli.json("list")
    assert (job["reason"], job["usage"]["larger"]) == ("OutOfMemory", "medium")
    shown = cli.run("show", job["name"]).stdout
    assert re.search(rf"then +jupyter-to-job rerun {job['name']} -f medium\n", shown)


def test_what_a_running_job_has_used_so_far(cli: Cli) -> None:
    name = cli.submit_waiting()
    used = until(lambda: cli.json("show", name)["usage"], "a first receipt")
    assert used["memory_peak"] > 0 and used["memory_given"] == 2 << 30
    assert used["enough"] is None
    cli.release()
    cli.run("wait", name)


def test_after_a_short_run_nothing_is_advised(cli: Cli) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "x = 1")
    ran = cli.run("submit", "a.ipynb", "-f", "medium", "--wait")
    assert "of 8 GiB of memory at most.\n" in ran.stderr
