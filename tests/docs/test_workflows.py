"""The workflows in `.github` call targets of the Makefile and leave out suites that exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from .pages import ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_target_exists(path: Path) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    called = re.findall(r"^make ([a-z-]+)", "\n".join(_commands(path)), re.MULTILINE)
    assert called
    assert set(called) <= set(targets)


def test_a_pull_request_leaves_out_the_cluster_and_nothing_else() -> None:
    commands = _commands(ROOT / ".github/workflows/test.yml")
    assert "make test SKIP=cluster" in commands
    assert "make test" in _commands(ROOT / ".github/workflows/cluster.yml")


def test_a_suite_of_another_name_cannot_be_left_out() -> None:
    run = subprocess.run(
        [ROOT / "scripts/test"],
        env={"SKIP": "clutser", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2
    assert "no suite clutser" in run.stderr


def _commands(path: Path) -> list[str]:
    jobs = yaml.safe_load(path.read_text())["jobs"].values()
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]
