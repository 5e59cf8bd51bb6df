"""`flavors` and `flavors check` as a user and an admin meet them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_to_job.flavors import SHIPPED

from .. import notebooks
from .cli import COMMAND, Cli

BROKEN = """\
apiVersion: jupyter-to-job.io/v1
default: {flavor: small, device: cpu}
flavors:
  small: {cpu: lots, memory: 2Gi, devices: [cpu]}
  gpu: {gpu: 1, devices: [cpu]}
devices:
  cpu: {}
"""
GROUPS = BROKEN.replace("lots", "1").replace("{gpu: 1,", "{allowed: {groups: [nobody-is-in-it]},")


@pytest.fixture
def admins(cli: Cli) -> Iterator[Path]:
    """A broken file of the admin's, where Jupyter's config path has it."""
    path = cli.home / ".jupyter" / "flavors.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(BROKEN)
    yield path
    path.unlink()  # the home is all tests' own


def test_a_laptop_shows_what_it_cannot_do_and_why(cli: Cli) -> None:
    shown = cli.run("flavors")
    assert (shown.returncode, shown.stderr) == (0, "")
    lines = {line.split()[0]: line for line in shown.stdout.splitlines() if line}
    assert " yes " in lines["small*"] and "cpu*" in lines["small*"]
    assert " no " in lines["gpu-1"] and "t4" in lines["gpu-1"]
    assert "hardware" in lines["a100-mig-1g"] and "0 of 0" in lines["a100-mig-1g"]
    assert "gpu-1. Needs 1 nvidia.com/gpu; there is none here." in shown.stdout

    described = cli.json("flavors")
    assert set(described) == {"default", "flavors", "devices"}
    assert described["flavors"]["gpu-1"]["allowed"] is True
    assert "nvidia.com/gpu" in described["flavors"]["gpu-1"]["unavailable_reason"]
    assert described["devices"]["nvidia"]["total"] == 0
    assert "same cards" not in shown.stdout


def test_the_catalogs_variables_reach_the_notebook(cli: Cli, admins: Path) -> None:
    """The device's win over the flavor's, and the user's over both."""
    admins.write_text(
        BROKEN.split("flavors:")[0]
        + "flavors: {small: {devices: [cpu], env: {A: flavor, B: flavor, C: flavor}}}\n"
        + "devices: {cpu: {env: {B: device, C: device}}}\n"
    )
    notebooks.write(cli.workspace / "a.ipynb", "import os; print(*map(os.environ.get, 'ABC'))")
    job = cli.json("submit", "a.ipynb", "-e", "C=user", "--wait")
    assert notebooks.printed(cli.result(job)) == "flavor device user\n"


def test_who_asks_for_too_much_is_told_what_fits(cli: Cli) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "1")
    refused = cli.run("submit", "a.ipynb", "-f", "gpu-1")
    assert refused.returncode == 4
    assert "nvidia.com/gpu" in refused.stderr
    assert "small, medium." in refused.stderr


def test_an_empty_name_is_no_flavor(cli: Cli) -> None:
    """As of a variable of the shell that is not set."""
    notebooks.write(cli.workspace / "a.ipynb", notebooks.parameters("a = 0"), "1")
    name = cli.json("submit", "a.ipynb", "--wait")["name"]
    sweep = ("submit", "a.ipynb", "--sweep", "-p", "a", "[1, 2]")
    for command in ("submit", "a.ipynb"), sweep, ("rerun", name), ("rerun", name, "--current"):
        for option, kind in (("-f", "flavor"), ("-d", "device")):
            ran = cli.run(*command, option, "")
            assert (ran.returncode, ran.stdout) == (2, ""), command
            assert f"no {kind} ''" in ran.stderr
    assert len(cli.json("list", "--all")) == 1


def test_pretended_gpus_make_it_available(cli: Cli) -> None:
    cli.capacity = "cpu=4,memory=16Gi,nvidia.com/gpu=2"
    described = cli.json("flavors")
    assert described["flavors"]["gpu-1"]["unavailable_reason"] is None
    assert described["devices"]["nvidia"]["free"] == described["devices"]["nvidia"]["total"] == 2
    assert [d["same_as"] for d in described["devices"].values() if d["same_as"]] == ["nvidia"] * 2
    shown = cli.run("flavors").stdout
    assert "2 of 2" in shown
    assert "The same cards here: nvidia, t4, a100." in shown


def test_a_flavor_for_others(cli: Cli, admins: Path) -> None:
    admins.write_text(GROUPS)
    assert cli.json("flavors")["flavors"]["gpu"]["allowed"] is False
    assert "Not here: gpu. For the groups nobody-is-in-it." in cli.run("flavors").stdout


def test_it_fits_a_narrow_terminal(cli: Cli) -> None:
    leader, follower = os.openpty()
    kept = {**os.environ, "HOME": str(cli.home), "COLUMNS": "60", "TERM": "xterm"}
    kept["JUPYTER_TO_JOB_EXCHANGE"] = cli.exchange.as_uri()
    ran = subprocess.Popen([COMMAND, "flavors"], env=kept, stdout=follower, cwd=cli.workspace)
    os.close(follower)
    text = b""
    while chunk := _read(leader):
        text += chunk
    os.close(leader)
    assert ran.wait(timeout=60) == 0
    tables = text.decode().split("Not here")[0].splitlines()
    assert len(tables) > 10
    assert max(map(len, tables)) <= 60
    assert any(line.startswith("small*") for line in tables)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux says so when the other side is closed
        return b""


def test_check_says_every_fault(cli: Cli, admins: Path) -> None:
    for arguments in ((), (str(admins),)):
        ran = cli.run("flavors", "check", *arguments)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert ran.stderr.splitlines() == [
            f"{admins}:4:16: `cpu`: 'lots' is no quantity."
            " Write it as Kubernetes does: 2, 500m, 16Gi.",
            f"{admins}:5:9: `gpu` is no key of a flavor. Did you mean `gpus`?",
        ]
    faults = cli.json("flavors", "check", code=2)
    assert [(f["line"], f["column"]) for f in faults] == [(4, 16), (5, 9)]
    assert set(faults[0]) == {"line", "column", "message", "hint"}


def test_check_of_a_good_one(cli: Cli) -> None:
    ran = cli.run("flavors", "check")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert str(SHIPPED) in ran.stdout and len(ran.stdout.splitlines()) == 1
    assert cli.json("flavors", "check", str(SHIPPED)) == []


def test_check_reads_stdin_and_names_what_is_not_there(cli: Cli) -> None:
    kept = {**os.environ, "HOME": str(cli.home)}
    ran = subprocess.run(
        [COMMAND, "flavors", "check", "-"], input=BROKEN, env=kept, capture_output=True, text=True
    )
    assert ran.returncode == 2
    assert ran.stderr.startswith("<stdin>:4:16: ")
    missing = cli.run("flavors", "check", "missing.yaml")
    assert missing.returncode == 2
    assert missing.stderr.startswith("missing.yaml:1:1: The file cannot be read: No such file")


def test_a_broken_catalog_in_a_fresh_process(cli: Cli, admins: Path) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "1")
    for command in (("flavors",), ("submit", "a.ipynb")):
        ran = cli.run(*command)
        assert (ran.returncode, ran.stdout) == (2, ""), ran.stderr
        assert f"{admins}:4:16: `cpu`: 'lots' is no quantity." in ran.stderr
        assert "Traceback" not in ran.stderr
