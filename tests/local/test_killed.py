"""Whatever is killed, the job ends, says why, and what it had printed is delivered once."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import psutil
import pytest

from jupyter_to_job.exchange import FileExchange

from .. import notebooks
from ..processes import BOUND, kill, until
from .cli import Cli


def test_the_runner(cli: Cli) -> None:
    name = cli.submit_waiting()
    kill(cli.runner(name))
    job = cli.json("wait", name, code=1)
    assert (job["state"], job["reason"]) == ("failed", "Lost")
    assert job["message"]
    assert cli.results(name) == [f"{name}.ipynb"]
    assert notebooks.printed(cli.result(job)) == "before\n"
    assert "Lost" in notebooks.banner(cli.result(job))


def test_the_dispatcher(cli: Cli) -> None:
    """The run goes on without it, and whoever waits starts a new one that takes it over."""
    name = cli.submit_waiting()
    (dispatcher,) = cli.dispatchers()
    kill(dispatcher)
    runner = cli.runner(name)
    waiting = cli.start("wait", name, "--json")
    until(cli.dispatchers, "a new dispatcher")
    assert cli.runner(name) == runner
    cli.release()
    waiting.communicate(timeout=60)
    assert waiting.returncode == 0
    job = cli.json("show", name)
    assert job["state"] == "succeeded"
    assert notebooks.printed(cli.result(job)) == "before\nafter\nend\n"
    assert cli.results(name) == [f"{name}.ipynb"]


def test_both(cli: Cli) -> None:
    name = cli.submit_waiting()
    (dispatcher,) = cli.dispatchers()
    runner = cli.runner(name)
    kill(dispatcher)
    kill(runner)
    assert cli.json("list")[0]["state"] == "failed"
    job = cli.json("wait", name, code=1)
    assert (job["state"], job["reason"]) == ("failed", "Lost")
    assert notebooks.printed(cli.result(job)) == "before\n"
    assert cli.results(name) == [f"{name}.ipynb"]


def test_the_dispatcher_with_jobs_in_line(cli: Cli) -> None:
    cli.capacity = "cpu=1,memory=8Gi"
    first = cli.submit_waiting()
    second = cli.submit("waits.ipynb")
    (dispatcher,) = cli.dispatchers()
    kill(dispatcher)
    cli.release()
    jobs = cli.json("wait", first, second)
    assert [job["state"] for job in jobs] == ["succeeded", "succeeded"]
    assert len(cli.results(first) + cli.results(second)) == 2


def test_a_cancel_while_there_is_no_dispatcher(cli: Cli) -> None:
    name = cli.submit_waiting()
    (dispatcher,) = cli.dispatchers()
    kill(dispatcher)
    assert cli.run("cancel", name).returncode == 0
    assert cli.json("wait", name, code=1)["state"] == "cancelled"


def test_a_notebook_that_ignores_being_stopped(cli: Cli) -> None:
    """Its kernel ignores SIGTERM and SIGINT; the runner does not wait for it for long."""
    deaf = "import signal\nfor s in (15, 2): signal.signal(s, signal.SIG_IGN)\n"
    loop = "print('before', flush=True)\nimport time\nwhile True: time.sleep(1)"
    notebooks.write(cli.workspace / "deaf.ipynb", deaf, loop)
    name = cli.submit("deaf.ipynb")
    cli.until_printed(name, "before")
    cli.run("cancel", name)
    job = cli.json("wait", name, code=1)
    assert job["state"] == "cancelled"
    assert notebooks.printed(cli.result(job)) == "before\n"


def test_a_runner_that_is_stopped_can_be_cancelled(cli: Cli) -> None:
    name = cli.submit_waiting()
    cli.runner(name).suspend()
    cli.run("cancel", name)
    job = cli.json("wait", name, code=1)
    assert job["state"] == "cancelled"
    assert notebooks.printed(cli.result(job)) == "before\n"


def test_who_only_looks_brings_a_dispatcher_back(cli: Cli) -> None:
    name = cli.submit_waiting()
    (dispatcher,) = cli.dispatchers()
    kill(dispatcher)
    assert cli.json("list")[0]["name"] == name
    until(cli.dispatchers, "a dispatcher that `list` has started")


def test_a_cancelled_runner_that_had_to_be_killed(cli: Cli) -> None:
    """It counts as cancelled, though it had no chance to say so."""
    name = cli.submit_waiting()
    (dispatcher,) = cli.dispatchers()
    dispatcher.suspend()
    cli.run("cancel", name)
    kill(cli.runner(name))
    dispatcher.resume()
    job = cli.json("wait", name, code=1)
    assert (job["state"], job["reason"]) == ("cancelled", None)
    assert notebooks.printed(cli.result(job)) == "before\n"


@pytest.mark.parametrize("again", [False, True])
def test_a_stopped_runner_frees_its_slot(cli: Cli, again: bool) -> None:
    """It cannot notice its own time limit; `again`: nor when it is woken."""
    cli.capacity = "cpu=1,memory=8Gi"
    name = cli.submit_waiting("--max-runtime", "5s")
    runner = cli.runner(name)
    runner.suspend()
    waiting = cli.submit("waits.ipynb")

    def is_over() -> bool:
        if again and psutil.pid_exists(runner.pid):
            with contextlib.suppress(psutil.Error):
                runner.suspend()
        return bool(cli.json("show", name)["state"] == "failed")

    until(is_over, "the end of a run past its limit")
    job = cli.json("wait", name, code=1)
    assert (job["reason"], job["delivery"]["state"]) == ("DeadlineExceeded", "delivered")
    assert notebooks.printed(cli.result(job)).startswith("before\n")
    cli.release()
    assert cli.json("wait", waiting)["state"] == "succeeded"


STOPS = """\
import os, signal
from jupyter_to_job.cli.main import main
from jupyter_to_job.service.submitting import submission
copy = submission.freeze_input
def copy_and_stop(item, *given, **how):
    record = copy(item, *given, **how)
    if item.path == "data/first/a.csv":
        os.kill(os.getpid(), signal.SIGSTOP)
    return record
submission.freeze_input = copy_and_stop
main(prog_name="jupyter-to-job")
"""
"""The command, which stops when it has copied the first of two inputs."""


@pytest.mark.parametrize("end", ["killed", "resumed"])
def test_a_submission_that_stands_still_for_an_hour(cli: Cli, end: str) -> None:
    """After Ctrl-Z, or under a laptop's lid: another dispatcher sweeps meanwhile."""
    for folder in ("first", "second"):
        (cli.workspace / "data" / folder).mkdir(parents=True)
        (cli.workspace / "data" / folder / "a.csv").write_text(folder)
    notebooks.write(cli.workspace / "a.ipynb", "print(open('data/first/a.csv').read())")
    cli.command = (sys.executable, "-c", STOPS)
    submission = cli.start("submit", "a.ipynb", "-i", "data", "--isolated", "--wait")
    process = psutil.Process(submission.pid)
    until(lambda: process.status() == psutil.STATUS_STOPPED, "it stops")
    (draft,) = cli.exchange.glob(".new-*")
    os.utime(draft, (0, 0))
    FileExchange(cli.exchange).remove_leftovers()
    if end == "resumed":
        process.resume()
        out, err = submission.communicate(timeout=2 * BOUND)
        assert submission.returncode == 0, err
        assert notebooks.printed(Path(out.strip())) == "first\n"
    else:
        assert draft.exists()
        kill(process)
        FileExchange(cli.exchange).remove_leftovers()
        assert not draft.exists()
