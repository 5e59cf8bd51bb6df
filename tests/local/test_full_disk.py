"""On a full disk jobs can be cancelled and deleted, as those who are to make room will do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from job_runner.protocol import layout

from .. import full_disks, notebooks
from ..processes import kill, until
from .cli import Cli


@pytest.fixture
def disk(cli: Cli, tmp_path: Path) -> Iterator[Path]:
    """A small disk for the exchange."""
    with full_disks.small_disk(tmp_path / "disk") as disk:
        cli.exchange = disk / "exchange"
        cli.capacity = "cpu=1,memory=8Gi"
        yield disk


def is_running(cli: Cli, name: str) -> bool:
    return bool(cli.json("show", name)["state"] == "running")


def has_delete(cli: Cli, name: str) -> bool:
    return (cli.exchange / name / layout.DELETE).exists()


@pytest.mark.parametrize("kind", full_disks.FULL_OF)
def test_cancel_and_delete(cli: Cli, disk: Path, kind: str) -> None:
    """Also after room was made and is full again, and where a dispatcher has to be started."""
    notebooks.write(cli.workspace / "a.ipynb", "1")
    notebooks.write(cli.workspace / "b.ipynb", "import time; time.sleep(600)")
    for dispatchers_to_kill in (0, 1):
        delivered = cli.json("submit", "a.ipynb", "--wait")["name"]
        running = cli.submit("b.ipynb")
        until(partial(is_running, cli, running), "it runs")
        waiting, cancelled = cli.submit("a.ipynb"), cli.submit("a.ipynb")
        for dispatcher in cli.dispatchers()[:dispatchers_to_kill]:
            kill(dispatcher)
        full_disks.fill(disk, kind)
        ran = cli.run("cancel", cancelled)
        assert ran.returncode == 0, ran.stderr
        assert cli.json("wait", cancelled, code=1)["state"] == "cancelled"
        ran = cli.run("delete", running, waiting, delivered, cancelled)
        assert ran.returncode == 0, ran.stderr
        assert cli.json("list", "--all") == []
        until(lambda: not list(cli.exchange.glob("[ab]-*")), "the folders of all jobs are gone")
        shutil.rmtree(disk / "filler")


@pytest.mark.parametrize("kind", full_disks.FULL_OF)
def test_before_any_job_was_delivered(cli: Cli, disk: Path, kind: str) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "import time; time.sleep(600)")
    running = cli.submit("a.ipynb")
    waiting = cli.submit("a.ipynb")
    until(partial(is_running, cli, running), "it runs")
    full_disks.fill(disk, kind)
    ran = cli.run("cancel", waiting)
    assert ran.returncode == 0, ran.stderr
    assert cli.json("wait", waiting, code=1)["state"] == "cancelled"


@pytest.mark.parametrize("kind", full_disks.FULL_OF)
def test_cancel_takes_the_last_room(cli: Cli, disk: Path, kind: str) -> None:
    """Then the ballast is for the end of the job."""
    notebooks.write(cli.workspace / "a.ipynb", "import time; time.sleep(600)")
    running = cli.submit("a.ipynb")
    waiting = cli.submit("a.ipynb")
    until(partial(is_running, cli, running), "it runs")
    full_disks.fill(disk, kind, left=2)
    ran = cli.run("cancel", waiting)
    assert ran.returncode == 0, ran.stderr
    assert cli.json("wait", waiting, code=1)["state"] == "cancelled"


@pytest.mark.parametrize("kind", full_disks.FULL_OF)
def test_delete_many_that_wait(cli: Cli, disk: Path, kind: str) -> None:
    """Once no room is left at all: the dispatcher was slow, so that the wishes took what there was.

    Each job that is removed then makes room for the wishes of others.
    """
    notebooks.write(cli.workspace / "a.ipynb", "1")
    notebooks.write(cli.workspace / "b.ipynb", "import time; time.sleep(600)")
    cli.json("submit", "a.ipynb", "--wait")
    running = cli.submit("b.ipynb")
    until(partial(is_running, cli, running), "it runs")
    values = list(range(40))
    sweep = cli.json("submit", "a.ipynb", "--sweep", "-p", "x", f"{values}")
    waiting = [job["name"] for job in sweep]
    (dispatcher,) = cli.dispatchers()
    dispatcher.suspend()
    full_disks.fill(disk, kind)
    ran = cli.run("delete", *waiting)
    assert (ran.returncode, "full" in ran.stderr) == (5, True)
    deleted = [cli.exchange / name for name in waiting if has_delete(cli, name)]
    dispatcher.resume()
    until(lambda: not any(path.exists() for path in deleted), "they are gone")
    remaining = [name for name in waiting if (cli.exchange / name).exists()]
    ran = cli.run("delete", *remaining)
    assert ran.returncode == 0, ran.stderr
    until(lambda: not list(cli.exchange.glob("a-*/cancel.json")), "they are gone")
    assert is_running(cli, running)
