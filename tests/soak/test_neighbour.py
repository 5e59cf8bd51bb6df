"""Another user of the same machine, who may write to the workspace: nothing of a job is his.

The workspace is a folder of a team, and the exchange lies in a folder like /tmp.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from job_runner.protocol import layout
from job_runner.protocol.journal.journal import read_journal

from .. import notebooks
from ..local.cli import Cli
from ..processes import end_all, until

NEIGHBOUR = 65534
SECRET = "only mine"
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
Try = Callable[[], object]


def as_neighbour(attempt: Try) -> bool:
    """Let the other user try something; tell whether it worked."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(NEIGHBOUR)
            os.setuid(NEIGHBOUR)
            signal.alarm(10)
            code = 0 if attempt() is not False else 1
        except OSError:
            pass
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1] == 0


class Team:
    """A user at work, with a private file, in folders that others may write to."""

    def __init__(self, folder: Path) -> None:
        folder.chmod(0o755)
        for name, mode in (("shared", 0o1777), ("workspace", 0o777), ("home", 0o700)):
            (folder / name).mkdir()
            (folder / name).chmod(mode)
        self.workspace = folder / "workspace"
        self.exchange = folder / "shared" / "exchange"
        self.private = folder / "home" / "private.txt"
        self.private.write_text(SECRET)
        self.cli = Cli(self.workspace, self.exchange, folder / "home")


@pytest.fixture
def team() -> Iterator[Team]:
    # pytest's own folders are closed to others.
    folder = Path(tempfile.mkdtemp(prefix="neighbour-"))
    team = Team(folder)
    yield team
    team.cli.end()
    end_all(folder)
    shutil.rmtree(folder)


def link(path: Path, target: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        path.rename(path.with_name(".away"))
    path.symlink_to(target)


def lock(path: Path) -> None:
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def connect(folder: Path) -> None:
    for path in folder.iterdir():
        socket.socket(socket.AF_UNIX).connect(str(path))


def tries(team: Team, name: str) -> dict[str, Try]:
    """What the other user may try while a job runs."""
    job, attempt = team.exchange / name, team.exchange / name / "attempt-1"
    runner, (dispatcher,) = team.cli.runner(name), team.cli.dispatchers()
    (kernel, *_) = runner.children()
    journal = attempt / layout.JOURNAL / "00000001.jsonl"
    sockets = Path(next(iter(read_journal(journal.parent))).record["sockets"])
    forged = {"v": 1, "path": "/etc/passwd", "sha256": "", "time": "2026-11-22T00:00:00.000Z"}
    return {
        "list the exchange": lambda: list(team.exchange.iterdir()),
        "read the request": (job / layout.REQUEST).read_bytes,
        "read the snapshot": (job / layout.SNAPSHOT).read_bytes,
        "read the journal": journal.read_bytes,
        "write to the journal": lambda: journal.open("ab").close(),
        "forge a delivery": lambda: (job / layout.DELIVERY).write_text(json.dumps(forged)),
        "forge a wish to cancel": lambda: (job / layout.CANCEL).write_text(json.dumps(forged)),
        "forge an outcome": lambda: (attempt / layout.OUTCOME).write_text(json.dumps(forged)),
        "add a job": lambda: shutil.copytree(team.workspace, team.exchange / "forged-aaaaaaaa"),
        "move the exchange": lambda: team.exchange.rename(team.exchange.with_name("mine")),
        "lock the attempt": lambda: lock(attempt / layout.LOCK),
        "lock out the dispatcher": lambda: lock(next(team.exchange.glob(".dispatcher/*/lock"))),
        "end the runner": lambda: os.kill(runner.pid, signal.SIGTERM),
        "stop the kernel": lambda: os.kill(kernel.pid, signal.SIGSTOP),
        "end the dispatcher": lambda: os.kill(dispatcher.pid, signal.SIGKILL),
        "read the runner's variables": Path(f"/proc/{runner.pid}/environ").read_bytes,
        "read the kernel's memory": lambda: Path(f"/proc/{kernel.pid}/mem").open("rb").close(),
        "find the kernel's sockets": lambda: list(sockets.iterdir()),
        "talk to the kernel": lambda: connect(sockets),
        "see the secret in a command line": lambda: any(
            SECRET in " ".join(p.cmdline()) for p in psutil.process_iter()
        ),
        "read the private file": team.private.read_bytes,
    }


def test_the_exchange_and_the_processes(team: Team) -> None:
    name = team.cli.submit_waiting("-e", f"TOKEN={SECRET}")
    worked = [what for what, attempt in tries(team, name).items() if as_neighbour(attempt)]
    assert worked == []
    team.cli.release()
    job = team.cli.json("wait", name)
    assert (job["state"], job["delivery"]["state"]) == ("succeeded", "delivered")
    assert notebooks.printed(team.cli.result(job)) == "before\nafter\nend\n"
    assert team.private.read_text() == SECRET


PLANTED: dict[str, Callable[[Team, Path], object]] = {
    "link to a private file": lambda team, path: path.symlink_to(team.private),
    "link to a private folder": lambda team, path: path.symlink_to(team.private.parent),
    "link to nowhere": lambda team, path: path.symlink_to(team.private.with_name("new")),
    "fifo": lambda _, path: os.mkfifo(path),
    "folder": lambda _, path: path.mkdir(),
    "file": lambda _, path: path.write_text("planted"),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_what_is_planted_where_the_result_goes(team: Team, kind: str) -> None:
    """The result goes beside it, and nothing behind it changes."""
    name = team.cli.submit_waiting()
    path = team.workspace / f"{name}.ipynb"
    assert as_neighbour(lambda: PLANTED[kind](team, path))
    before = sorted(team.private.parent.iterdir())
    team.cli.release()
    job = team.cli.json("wait", name)
    assert job["delivery"]["state"] == "delivered"
    result = team.cli.result(job)
    assert result != path and result.stat().st_uid == os.geteuid()
    assert notebooks.printed(result) == "before\nafter\nend\n"
    assert team.private.read_text() == SECRET
    assert [p for p in sorted(team.private.parent.iterdir()) if p.suffix == ".ipynb"] == []
    assert set(before) <= set(team.private.parent.iterdir())


def test_a_folder_of_results_that_becomes_a_link(team: Team) -> None:
    """It leads out of the workspace now: the result waits, and says why."""
    results = team.workspace / "results"
    assert as_neighbour(results.mkdir)
    assert as_neighbour(lambda: results.chmod(0o777))
    name = team.cli.submit_waiting("--output", "results/")
    assert as_neighbour(lambda: link(results, team.private.parent))
    team.cli.release()
    seen = until(
        lambda: (job := team.cli.json("show", name))["delivery"]["state"] != "pending" and job,
        "the delivery is decided",
    )
    assert seen["delivery"]["state"] == "held", seen
    assert list(team.private.parent.glob("*.ipynb")) == []


def test_a_notebook_that_is_a_link_to_a_private_file(team: Team) -> None:
    """Its content would be in a result that others read."""
    notebooks.write(team.private.with_name("private.ipynb"), "print('mine')")
    source = team.workspace / "study.ipynb"
    assert as_neighbour(lambda: link(source, team.private.with_name("private.ipynb")))
    refused = team.cli.run("submit", "study.ipynb")
    assert refused.returncode == 2 and "leads out" in refused.stderr
    assert as_neighbour(source.unlink)
    assert as_neighbour(lambda: os.mkfifo(source))
    refused = team.cli.run("submit", "study.ipynb")
    assert refused.returncode == 2 and "is a pipe" in refused.stderr


def test_an_exchange_that_somebody_else_made(team: Team) -> None:
    """Its jobs are not run, and no job of ours is put into it."""
    marker = team.workspace / "ran"
    notebooks.write(team.workspace / "study.ipynb", f"open({str(marker)!r}, 'w')")
    model = Cli(team.workspace, team.exchange.with_name("model"), team.private.parent)
    name = model.submit_waiting()
    model.release()
    model.json("wait", name)
    marker.unlink(missing_ok=True)
    request = json.loads((model.exchange / name / layout.REQUEST).read_text())
    snapshot = (team.workspace / "study.ipynb").read_bytes()

    def forge() -> None:
        job = team.exchange / name
        job.mkdir(parents=True)
        (job / layout.REQUEST).write_text(json.dumps(request))
        (job / layout.SNAPSHOT).write_bytes(snapshot)
        for path in (team.exchange, job, *job.iterdir()):
            path.chmod(0o777)

    assert as_neighbour(forge)
    assert team.cli.json("list", "--all") == []
    assert team.cli.run("show", name).returncode == 3
    refused = team.cli.run("submit", "study.ipynb")
    assert "belongs to another user" in refused.stderr and refused.returncode == 5
    assert f"ignored: {name}" in team.cli.run("doctor").stdout
    assert not marker.exists() and team.cli.dispatchers() == []
    model.end()


def test_an_exchange_that_was_open_to_others(team: Team) -> None:
    """It is closed at the first use; what was put there before counts for nothing."""
    team.exchange.mkdir()
    team.exchange.chmod(0o777)
    assert as_neighbour((team.exchange / "forged-aaaaaaaa").mkdir)
    assert team.cli.json("list", "--all") == []
    assert team.exchange.stat().st_mode & 0o022 == 0
    name = team.cli.submit_waiting()
    team.cli.release()
    assert team.cli.json("wait", name)["delivery"]["state"] == "delivered"
