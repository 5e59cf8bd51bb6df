"""JUPYTER_TO_JOB_RESULTS: results go into a folder that is made when it is missing."""

from __future__ import annotations

import shutil

import pytest

from .. import notebooks
from .cli import Cli


@pytest.fixture
def folders(cli: Cli) -> Cli:
    notebooks.write(cli.workspace / "deep" / "数据.ipynb", "1")
    cli.variables["JUPYTER_TO_JOB_RESULTS"] = "results/{notebook}"
    return cli


def test_below_the_notebooks_folder(folders: Cli) -> None:
    job = folders.json("submit", "deep/数据.ipynb", "--wait")
    assert job["name"].startswith("shuju-")
    assert job["delivery"]["path"] == f"deep/results/数据/{job['name']}.ipynb"
    assert (job["output"], job["asked"]["output"]) == ("deep/results/数据/", None)
    # The setting counts anew for a run again, and not what it was before.
    folders.variables["JUPYTER_TO_JOB_RESULTS"] = "/all/"
    again = folders.json("rerun", job["name"], "--wait")
    assert again["delivery"]["path"] == f"all/{again['name']}.ipynb"
    current = folders.json("rerun", job["name"], "--current", "--wait")
    assert current["delivery"]["path"] == f"all/{current['name']}.ipynb"
    asked = folders.json("submit", "deep/数据.ipynb", "--output", "here.ipynb", "--wait")
    assert (asked["delivery"]["path"], asked["asked"]["output"]) == ("here.ipynb", "here.ipynb")


def test_a_folder_that_is_asked_for(cli: Cli) -> None:
    notebooks.write(cli.workspace / "a.ipynb", "1")
    refused = cli.run("submit", "a.ipynb", "--output", "new/runs/", "-f", "enormous")
    assert (refused.returncode, (cli.workspace / "new").exists()) == (2, False)
    job = cli.json("submit", "a.ipynb", "--output", "new/runs/", "--wait")
    assert job["output"] == "new/runs/"
    assert job["delivery"]["path"] == f"new/runs/{job['name']}.ipynb"
    shutil.rmtree(cli.workspace / "new")
    again = cli.json("rerun", job["name"], "--wait")  # made again
    assert again["delivery"]["path"] == f"new/runs/{again['name']}.ipynb"


def test_no_link_leads_out(folders: Cli) -> None:
    outside = folders.workspace.parent / "outside"
    outside.mkdir()
    (folders.workspace / "deep" / "results").symlink_to(outside)
    ran = folders.run("submit", "deep/数据.ipynb", "--wait")
    assert ran.returncode == 2
    assert "leads out of the workspace" in ran.stderr
    assert list(outside.iterdir()) == []


def test_a_file_in_its_place(folders: Cli) -> None:
    (folders.workspace / "deep" / "results").write_text("")
    ran = folders.run("submit", "deep/数据.ipynb", "--wait")
    assert ran.returncode == 2
    assert "Cannot write deep/results/数据/: Not a directory." in ran.stderr
    assert "Choose another place for the result." in ran.stderr
    assert "deliver" not in ran.stderr  # there is no job


@pytest.mark.parametrize("setting", ["{job}/", "../out", "a/{notebook/"])
def test_what_is_no_folder(folders: Cli, setting: str) -> None:
    folders.variables["JUPYTER_TO_JOB_RESULTS"] = setting
    ran = folders.run("submit", "deep/数据.ipynb")
    assert ran.returncode == 2
    assert "is no folder for results" in ran.stderr
