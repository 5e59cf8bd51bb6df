"""What a package index shows of the package: links and pictures that work there, and its facts."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest

from .pages import ROOT

if sys.version_info < (3, 11):
    pytest.skip("Python 3.10 has no tomllib", allow_module_level=True)
import tomllib

PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
README = PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
SOURCE = PROJECT["urls"]["Source"]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)]+)\)")


def rendered() -> str:
    text: str = (ROOT / README["fragments"][0]["path"]).read_text(encoding="utf-8")
    for rule in README["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    return text


def test_every_link_and_picture_is_absolute() -> None:
    targets = LINK.findall(rendered())
    assert len(targets) > 20
    assert [t for t in targets if not t.startswith(("https://", "#"))] == []
    raw = SOURCE.replace("github.com", "raw.githubusercontent.com")
    own = re.compile(rf"{SOURCE}/blob/main/|{raw}/main/")
    files = [own.sub("", t).partition("#")[0] for t in targets if own.match(t)]
    assert "docs/images/demo-dialog.png" in files
    assert [name for name in files if not (ROOT / name).exists()] == []


def test_pictures_lead_to_their_bytes() -> None:
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", rendered())
    assert pictures and all("raw.githubusercontent.com" in each for each in pictures)


def test_addresses_are_of_one_repository() -> None:
    assert {"Source", "Documentation", "Changelog", "Issues"} <= set(PROJECT["urls"])
    assert all(url.startswith(SOURCE) for url in PROJECT["urls"].values())


def test_it_says_what_it_is() -> None:
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert (ROOT / "jupyter_to_job" / "py.typed").exists()
    assert (ROOT / "job_runner" / "py.typed").exists()
    shared = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert shared["docs/man/jupyter-to-job.1"] == "share/man/man1/jupyter-to-job.1"
