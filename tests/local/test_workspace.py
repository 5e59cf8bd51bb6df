"""Files to and from the workspace, with real processes: inputs, artifacts, held results, links."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from nbformat import read
from nbformat.sign import NotebookNotary

from job_runner.protocol import layout

from .. import full_disks, notebooks
from ..processes import until
from .cli import Cli

CREATES = """\
import os
os.makedirs('plots', exist_ok=True)
print(open('in.txt').read(), open('../shared/x.csv').read(), sorted(os.listdir('.')))
open('in.txt', 'a').write('changed')
open('plots/1.png', 'wb').write(b'png')
open('../shared/made.csv', 'w').write('made')
"""
LARGE = "open('large', 'wb').write(b'x' * (3 << 20))"


def until_delivery_is(cli: Cli, name: str, state: str) -> dict[str, Any]:
    """The job once its delivery is in a state."""

    def look() -> dict[str, Any] | None:
        job: dict[str, Any] = cli.json("show", name)
        return job if job["delivery"]["state"] == state else None

    return until(look, f"{name} is {state}")


def tree(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


@pytest.fixture
def small_disk(cli: Cli) -> Iterator[Path]:
    """A folder of the workspace that is a disk of 1 MiB."""
    with full_disks.small_disk(cli.workspace / "disk", "1m") as disk:
        yield disk


# Inputs ---------------------------------------------------------------------------------------


def test_inputs_of_an_isolated_job(cli: Cli) -> None:
    notebooks.write(cli.workspace / "dir" / "a.ipynb", CREATES)
    (cli.workspace / "dir" / "in.txt").write_text("in")
    (cli.workspace / "shared").mkdir()
    for name in ("x.csv", "secret.csv", "x.tmp"):
        (cli.workspace / "shared" / name).write_text(name)
    (cli.workspace / ".jobignore").write_text("*.tmp\n")
    (cli.workspace / "shared" / ".jobignore").write_text("secret*\n")
    ran = cli.run(
        *("submit", "dir/a.ipynb", "--isolated", "--wait", "--json"),
        *("-i", "dir/in.txt", "-i", "shared"),
    )
    assert ran.returncode == 0, ran.stderr
    assert "ends 2 files, 7 bytes (2 left out by .jobignore)" in ran.stderr
    job = json.loads(ran.stdout)
    assert job["inputs"] == ["dir/in.txt", "shared/x.csv"]
    assert notebooks.printed(cli.result(job)) == "in x.csv ['in.txt', 'plots']\n"


@pytest.mark.parametrize(
    ("pattern", "says"),
    [("missing", "missing"), ("*.csv", "*.csv"), ("pipe", "regular"), ("big", "big (5 GiB)")],
)
def test_inputs_that_cannot_go(cli: Cli, pattern: str, says: str) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "1")
    os.mkfifo(cli.workspace / "pipe")
    with (cli.workspace / "big").open("wb") as file:
        file.truncate(5 << 30)
    ran = cli.run("submit", "a.ipynb", "-i", pattern)
    assert ran.returncode == 2, ran.stderr
    assert says in ran.stderr
    assert list(cli.exchange.glob("*/request.json")) == []


@pytest.mark.parametrize("kind", ["folder", "pipe", "empty", "junk", "truncated", "newer"])
def test_what_is_no_notebook(cli: Cli, kind: str) -> None:
    path = cli.workspace / f"it's {{no}} 100% nötebook {kind}.ipynb"
    data = {"empty": b"", "junk": os.urandom(1000), "truncated": b'{"cells": [', "newer": b"{}"}
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_bytes(data[kind])
    ran = cli.run("submit", path.name)
    assert ran.returncode == 2
    assert "Traceback" not in ran.stderr
    assert ran.stdout == ""


# Artifacts ------------------------------------------------------------------------------------


def test_artifacts_come_back(cli: Cli) -> None:
    notebooks.write(cli.workspace / "dir" / "a.ipynb", CREATES, "1 / 0")
    (cli.workspace / "dir" / "in.txt").write_text("in")
    (cli.workspace / "shared").mkdir()
    (cli.workspace / "shared" / "x.csv").write_text("x")
    before = tree(cli.workspace)
    inputs = ("-i", "dir/in.txt", "-i", "shared/x.csv")
    job = cli.json("submit", "dir/a.ipynb", "--isolated", *inputs, "--wait", code=1)
    name = job["name"]
    made = [
        f"dir/{name}/in.txt",
        f"dir/{name}/plots/1.png",
        f"dir/{name}/workspace/shared/made.csv",
    ]
    assert tree(cli.workspace) == sorted([*before, f"dir/{name}.ipynb", *made])
    assert (cli.workspace / "dir" / "in.txt").read_text() == "in"
    assert (cli.workspace / made[0]).read_text() == "inchanged"
    record = json.loads((cli.exchange / name / "delivery.json").read_text())
    assert record["artifacts"] == made
    (cli.exchange / name / "delivery.json").unlink()  # killed right before
    assert cli.run("deliver", name).returncode == 0
    assert tree(cli.workspace) == sorted([*before, f"dir/{name}.ipynb", *made])


WRITES_ON = """\
import subprocess
code = "import itertools as i, signal; signal.alarm(120); [print(n, flush=True) for n in i.count()]"
log = open('train.log', 'w')
print(subprocess.Popen(['python3', '-c', code], stdout=log, start_new_session=True).pid)
"""


def test_a_file_that_a_process_still_writes_comes_back(cli: Cli) -> None:
    """As much of it as was there at the end of the run."""
    notebooks.write(cli.workspace / "a.ipynb", WRITES_ON, "while not log.tell(): log.seek(0, 2)")
    job = cli.json("submit", "a.ipynb", "--isolated", "--wait")
    process = int(notebooks.printed(cli.result(job)))
    try:
        assert psutil.pid_exists(process)
        assert job["delivery"]["message"] is None
        copied = (cli.workspace / job["name"] / "train.log").read_text()
        assert copied.startswith("0\n1\n2\n")
    finally:
        os.kill(process, signal.SIGKILL)


def test_artifacts_held_for_want_of_space(cli: Cli, small_disk: Path) -> None:
    """The notebook is there at once, and is its owner's: a later try does not touch it."""
    notebooks.write(cli.workspace / "a.ipynb", LARGE)
    name = cli.submit("a.ipynb", "--isolated", "--output", "disk/a.ipynb")
    held = until_delivery_is(cli, name, "held")
    assert "disk/a.ipynb is there" in held["delivery"]["message"]
    assert "No space" in held["delivery"]["message"]
    until(lambda: tree(small_disk) == ["a.ipynb"], "nothing half written")
    (small_disk / "a.ipynb").write_text("edited")
    subprocess.run(["mount", "-o", "remount,size=8m", small_disk], check=True)
    assert cli.json("deliver", name)["delivery"]["path"] == "disk/a.ipynb"
    assert tree(small_disk) == sorted(["a.ipynb", f"{name}/large"])
    assert (small_disk / "a.ipynb").read_text() == "edited"


# Held, and taken up again ---------------------------------------------------------------------


@pytest.mark.parametrize("instead", ["nothing", "a file"])
def test_a_folder_that_is_gone(cli: Cli, instead: str) -> None:
    (cli.workspace / "out").mkdir()
    name = cli.submit_waiting("--output", "out")
    (cli.workspace / "out").rename(cli.workspace / "was")
    if instead == "a file":
        (cli.workspace / "out").touch()
    cli.release()
    held = until_delivery_is(cli, name, "held")
    assert held["state"] == "succeeded"
    assert held["delivery"]["message"].endswith(", then deliver it again.")
    (cli.workspace / "out").unlink(missing_ok=True)
    (cli.workspace / "was").rename(cli.workspace / "out")
    publishers = [cli.start("deliver", name) for _ in range(4)]
    assert {publisher.wait(60) for publisher in publishers} == {0}
    assert tree(cli.workspace / "out") == [f"{name}.ipynb"]


def test_a_full_disk(cli: Cli, small_disk: Path) -> None:
    older = notebooks.write(small_disk / "older.ipynb", "1")
    source = notebooks.write(small_disk / "a.ipynb", "print('x' * 100_000)")
    kept = older.read_bytes(), source.read_bytes()
    rest = small_disk / "rest"
    with rest.open("wb", buffering=0) as file:
        while True:
            try:
                file.write(b"x" * 4096)
            except OSError:
                break
    name = cli.submit("disk/a.ipynb")
    assert "No space" in until_delivery_is(cli, name, "held")["delivery"]["message"]
    assert (older.read_bytes(), source.read_bytes()) == kept
    # The dispatcher may be at its next try, with a draft of its own.
    until(lambda: tree(small_disk) == ["a.ipynb", "older.ipynb", "rest"], "nothing half written")
    rest.unlink()
    notebooks.write(cli.workspace / "b.ipynb", "1")
    cli.json("submit", "b.ipynb", "--wait")  # any later start takes it up again, or this one does
    until(lambda: cli.run("deliver", name).returncode == 0, "the delivery")
    assert "x" * 100_000 in notebooks.printed(small_disk / f"{name}.ipynb")
    assert tree(small_disk) == sorted(["a.ipynb", f"{name}.ipynb", "older.ipynb"])


def test_of_a_group_only_what_waits_for_delivery_is_tried(cli: Cli) -> None:
    night = ("--group", "night")
    running = cli.submit_waiting(*night)
    unstarted = cli.submit("waits.ipynb", *night, "--group-limit", "1")
    assert cli.run("cancel", unstarted).returncode == 0
    out = cli.workspace / "out"
    out.mkdir()
    notebooks.write(cli.workspace / "a.ipynb", "import os", "os.rmdir('out'); os.mknod('out')")
    held = until_delivery_is(cli, cli.submit("a.ipynb", *night, "--output", "out/"), "held")["name"]
    for dispatcher in cli.dispatchers():  # it tries again by itself; and a killed one is replaced
        dispatcher.suspend()
    record = cli.exchange / held / layout.HELD
    content = record.read_text()
    record.unlink()  # as another file, so that the index notices
    record.write_text(json.dumps({**json.loads(content), "failed": True}))  # it can never be
    assert cli.run("deliver", *night).returncode == 0
    record.unlink()
    record.write_text(content)

    tried = cli.run("deliver", *night)
    assert (tried.returncode, tried.stdout) == (1, "")
    assert [line.split()[0] for line in tried.stderr.splitlines()] == [held]
    out.unlink()
    out.mkdir()
    delivered = cli.run("deliver", "*")
    assert (delivered.returncode, delivered.stderr) == (0, "")
    assert delivered.stdout == f"{out / held}.ipynb\n"
    again = cli.run("deliver", "*")
    assert (again.returncode, again.stdout) == (0, "")
    assert again.stderr == "Nothing waits to be delivered.\n"
    assert cli.json("deliver", *night) == []
    assert cli.run("deliver", running).returncode == 1  # named: it is said why


def test_a_read_only_folder(cli: Cli, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    notebooks.write(cli.workspace / "a.ipynb", "1")
    name = cli.submit("a.ipynb", "--output", "disk")
    assert "Read-only" in until_delivery_is(cli, name, "held")["delivery"]["message"]
    subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
    assert cli.json("deliver", name)["delivery"]["path"] == f"disk/{name}.ipynb"


# Links ----------------------------------------------------------------------------------------


def test_a_folder_that_becomes_a_link_out(cli: Cli, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (cli.workspace / "out").mkdir()
    name = cli.submit_waiting("--output", "out")
    (cli.workspace / "out").rmdir()
    (cli.workspace / "out").symlink_to(outside)
    cli.release()
    assert "out of the workspace" in until_delivery_is(cli, name, "held")["delivery"]["message"]
    assert list(outside.iterdir()) == []


def test_a_folder_that_links_may_lead_to(cli: Cli, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    notebooks.write(outside / "a.ipynb", "print(open('in.txt').read())")
    (outside / "in.txt").write_text("in")
    (cli.workspace / "out").symlink_to(outside)
    assert cli.run("submit", "out/a.ipynb").returncode == 2
    cli.variables["JUPYTER_TO_JOB_ROOTS"] = str(outside)
    job = cli.json("submit", "out/a.ipynb", "-i", "out/in.txt", "--isolated", "--wait")
    assert job["delivery"]["path"] == f"out/{job['name']}.ipynb"
    assert notebooks.printed(outside / f"{job['name']}.ipynb") == "in\n"


# Trust ----------------------------------------------------------------------------------------


def test_outputs_are_trusted(cli: Cli) -> None:
    """By the notary of whoever submitted, as Jupyter Server asks it."""
    notebooks.write(cli.workspace / "a.ipynb", "from IPython.display import HTML; HTML('<b>x')")
    result = cli.result(cli.json("submit", "a.ipynb", "--wait"))

    def signed() -> bool:
        data_dir = cli.home / ".local" / "share" / "jupyter"
        if not (data_dir / "nbsignatures.db").exists():
            return False
        with NotebookNotary(data_dir=str(data_dir)) as notary:
            return notary.check_signature(read(result, as_version=4))

    until(signed, "the signature")
    source = read(cli.workspace / "a.ipynb", as_version=4)
    with NotebookNotary(data_dir=str(cli.home / ".local" / "share" / "jupyter")) as notary:
        assert not notary.check_signature(source)
