"""Runs that begin as copies of the dispatcher: nobody may notice, except that they are faster."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import papermill
import psutil
import pytest

from job_runner import proctitle
from job_runner.host import proc
from job_runner.log import log_line
from jupyter_to_job.dispatcher.forks import Fork

from .. import notebooks
from .cli import Cli

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="runs are copies on Linux only")

PRINT_ENVIRONMENT = """\
import json, os, signal, sys
mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
print(json.dumps({
    'environ': dict(os.environ), 'cwd': os.getcwd(), 'path': sys.path, 'mask': len(mask),
    'open': [os.readlink(f'/proc/self/fd/{n}') for n in (0,)],
    'nice': os.nice(0), 'interrupt': signal.getsignal(signal.SIGINT) is signal.default_int_handler,
}))
"""
"""A cell that says where it finds itself."""
VARIABLES_PER_RUN = {"JPY_PARENT_PID", "JUPYTER_TO_JOB_ATTEMPT"}
"""Variables that no two runs have in common."""


@pytest.fixture(autouse=True)
def shell(cli: Cli) -> None:
    """Variables that no run gets; with the second one a copy of the dispatcher was begun."""
    cli.variables["OF_THE_SHELL"] = "not passed on"
    cli.variables["JUPYTER_TO_JOB_RETENTION"] = "30"


def kernel_environment(cli: Cli) -> dict[str, Any]:
    """Run a notebook; return where its kernel found itself, without what is each run's own."""
    notebooks.write(cli.workspace / "tells.ipynb", PRINT_ENVIRONMENT)
    job = cli.json("submit", "tells.ipynb", "--wait")
    assert job["state"] == "succeeded", job
    seen: dict[str, Any] = json.loads(notebooks.printed(cli.result(job)))
    seen["environ"] = {k: v for k, v in seen["environ"].items() if k not in VARIABLES_PER_RUN}
    return seen


def is_fork(runner: psutil.Process) -> bool:
    """Tell a copy from a program: it was begun with the dispatcher's variables, all of them."""
    return "JUPYTER_TO_JOB_RETENTION" in runner.environ()


def finish(cli: Cli, name: str) -> None:
    cli.release()
    assert cli.json("wait", name)["state"] == "succeeded"
    (cli.workspace / "go").unlink()


def held_by(process: psutil.Process) -> list[str]:
    """Return what a process has open, but for what it closes meanwhile."""
    held = []
    for descriptor in Path(f"/proc/{process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            held.append(os.readlink(descriptor))  # noqa: PTH115 - of sockets, too
    return held


def test_a_copy_shows_what_it_is_and_shares_nothing(cli: Cli) -> None:
    kernel_environment(cli)
    name = cli.submit_waiting()
    runner, (dispatcher,) = cli.runner(name), cli.dispatchers()
    assert is_fork(runner)
    assert runner.ppid() == dispatcher.pid
    proctitle = [each for each in runner.cmdline() if each]
    job = str(cli.exchange / name)
    assert proctitle == [sys.executable, "-m", "job_runner", "run", job, "--attempt", "1"]
    assert os.getsid(runner.pid) == runner.pid
    held = held_by(runner)
    assert [Path(path).parent.name for path in held if path.endswith("/lock")] == ["attempt-1"]
    finish(cli, name)


def test_a_copy_s_kernel_finds_what_a_program_s_does(cli: Cli) -> None:
    first, second = kernel_environment(cli), kernel_environment(cli)
    assert not {"OF_THE_SHELL", "JUPYTER_TO_JOB_RETENTION"} & first["environ"].keys()
    assert second == first


@pytest.mark.parametrize("name", ["PYTHONPATH", "LC_ALL", "HOME"])
def test_what_an_interpreter_reads_as_it_starts_makes_it_start(cli: Cli, name: str) -> None:
    kernel_environment(cli)
    cli.variables[name] = "C" if name == "LC_ALL" else str(cli.workspace)
    job = cli.submit_waiting()
    assert not is_fork(cli.runner(job))
    finish(cli, job)


def test_what_only_the_dispatcher_s_interpreter_read_makes_it_start(cli: Cli) -> None:
    cli.variables["PYTHONPATH"] = str(cli.workspace)
    kernel_environment(cli)
    del cli.variables["PYTHONPATH"]
    job = cli.submit_waiting()
    assert not is_fork(cli.runner(job))
    finish(cli, job)


def test_what_was_installed_meanwhile_makes_it_start(cli: Cli, tmp_path: Path) -> None:
    place = tmp_path / "packages"
    place.mkdir()
    (place / "papermill").symlink_to(Path(papermill.__file__).parent)
    cli.variables["PYTHONPATH"] = str(place)
    kernel_environment(cli)
    job = cli.submit_waiting()
    assert is_fork(cli.runner(job))
    finish(cli, job)
    (place / "another.py").touch()
    job = cli.submit_waiting()
    assert not is_fork(cli.runner(job))
    finish(cli, job)


def test_a_zone_of_time_is_each_run_s_own(cli: Cli) -> None:
    for zone in ("UTC", "Asia/Taipei", "UTC"):
        cli.variables["TZ"] = zone
        assert kernel_environment(cli)["environ"]["TZ"] == zone


def test_a_copy_that_is_killed_is_told_and_the_next_one_runs(cli: Cli) -> None:
    kernel_environment(cli)
    name = cli.submit_waiting()
    runner = cli.runner(name)
    assert is_fork(runner)
    runner.kill()
    job = cli.json("wait", name, code=1)
    assert (job["state"], job["reason"]) == ("failed", "Lost")
    assert notebooks.printed(cli.result(job)).startswith("before")
    kernel_environment(cli)


def test_a_copy_outlives_the_dispatcher(cli: Cli) -> None:
    kernel_environment(cli)
    name = cli.submit_waiting()
    (dispatcher,) = cli.dispatchers()
    dispatcher.kill()
    cli.release()
    job = cli.json("wait", name)
    assert job["state"] == "succeeded"
    assert "after" in notebooks.printed(cli.result(job))


def test_a_copy_hears_every_signal_from_its_first_moment_on(tmp_path: Path) -> None:
    def heed() -> None:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(7))

    def work() -> int:
        signal.pause()
        return 1

    with (tmp_path / "log").open("wb") as log:
        for _ in range(200):
            copy = Fork(work, log.fileno(), heed)
            os.kill(copy.pid, signal.SIGTERM)
            status = os.waitpid(copy.pid, 0)[1]
            assert os.waitstatus_to_exitcode(status) == 7
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_only_what_fits_is_shown_and_nothing_where_nobody_tells_where(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert proctitle.fits_command_line(["a"])
    assert not proctitle.fits_command_line(["a" * (1 << 22)])
    monkeypatch.setattr(proc, "PROC", tmp_path / "hidden")
    assert not proctitle.fits_command_line(["a"])


@pytest.mark.parametrize("error", [None, ValueError("of the work")])
def test_a_copy_ends_though_its_log_is_on_a_full_disk(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    """Else it goes on where the dispatcher was: as a second one."""

    def work() -> int:
        log_line("Every cell ran.")
        if error is not None:
            raise error
        return 7

    with (
        open("/dev/full", "wb") as log,  # noqa: PTH123 - a device
        open(2, "w", buffering=1, closefd=False) as stderr,
    ):
        monkeypatch.setattr(sys, "stderr", stderr)
        try:
            copy = Fork(work, log.fileno())
        except BaseException:
            os._exit(99)  # never a second run of the tests
        status = os.waitpid(copy.pid, 0)[1]
    assert os.waitstatus_to_exitcode(status) == (7 if error is None else 1)
