"""The wheel as PyPI and its users get it: what it says of itself, and what it brings along.

It is built without the front end, which needs Node.js and is tested in the browser.
"""

from __future__ import annotations

import email.message
import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt

import jupyter_to_job

from .pages import ROOT, Page

HOME = "https://github.com/jupyter-to-job/jupyter-to-job"
PICTURES = HOME.replace("//github.com/", "//raw.githubusercontent.com/")
VERSION = jupyter_to_job.__version__


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        env={**os.environ, "HATCH_BUILD_NO_HOOKS": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> email.message.Message:
    text = wheel.read(f"jupyter_to_job-{VERSION}.dist-info/METADATA").decode()
    return email.message_from_string(text)


def targets(markdown: str) -> list[str]:
    """Return what the links and pictures of a text lead to, as PyPI's parser reads it."""
    inline = [token for token in MarkdownIt().parse(markdown) if token.children]
    return [
        str(target)
        for token in inline
        for child in token.children or ()
        if (target := child.attrs.get("href", child.attrs.get("src")))
    ]


def test_every_link_of_the_readme_leads_somewhere_from_elsewhere(
    metadata: email.message.Message,
) -> None:
    """On PyPI a relative link or picture leads nowhere."""
    text = metadata.get_payload()
    assert isinstance(text, str) and metadata["Description-Content-Type"] == "text/markdown"
    here = targets((ROOT / "README.md").read_text(encoding="utf-8"))
    there = targets(text)
    pages, pictures = f"{HOME}/blob/v{VERSION}/", f"{PICTURES}/v{VERSION}/"
    assert len(there) == len(here) > 20
    ours = [url for url in there if url.startswith((pages, pictures))]
    assert [url for url in there if url not in ours] == [
        link for link in here if link.startswith("https://")
    ]
    assert sum(url.startswith(pictures) for url in ours) == 3
    for url in ours:
        name, _, anchor = unquote(url).removeprefix(pages).removeprefix(pictures).partition("#")
        assert (ROOT / name).is_file(), url
        assert url.startswith(pictures) == name.endswith((".png", ".svg"))
        assert not anchor or anchor in Page(ROOT / name).anchors, url


def test_one_address_everywhere(metadata: email.message.Message) -> None:
    urls = dict(line.split(", ", 1) for line in metadata.get_all("Project-URL", []))
    assert set(urls) == {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    assert urls["Source"] == urls["Homepage"] == HOME
    assert urls["Issues"].startswith(HOME) and urls["Changelog"].startswith(HOME)
    package = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))
    assert package["homepage"] == HOME and package["bugs"]["url"] == urls["Issues"]
    assert package["repository"]["url"] == f"git+{HOME}.git"
    assert HOME in (ROOT / "RELEASING.md").read_text(encoding="utf-8")


def test_what_the_package_says_of_itself(metadata: email.message.Message) -> None:
    classifiers = metadata.get_all("Classifier", [])  # hatchling refuses those that PyPI refuses
    assert "Typing :: Typed" in classifiers
    assert "Framework :: Jupyter :: JupyterLab :: Extensions :: Prebuilt" in classifiers
    assert metadata["Version"] == VERSION and metadata["License-Expression"] == "BSD-3-Clause"
    assert metadata["Requires-Python"] == ">=3.10"


def test_the_man_page_is_where_man_looks(wheel: zipfile.ZipFile) -> None:
    installed = f"jupyter_to_job-{VERSION}.data/data/share/man/man1/jupyter-to-job.1"
    assert wheel.read(installed) == (ROOT / "docs/man/jupyter-to-job.1").read_bytes()


def test_type_checkers_know_the_signatures(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    (packages,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    wheel.extractall(packages)
    script = tmp_path / "script.py"
    script.write_text(
        "from job_runner.papermill_engine import JobRunnerEngine\n"
        "from jupyter_to_job import record, results\n"
        "record(3, 0.5)\n"
        "reveal_type(results)\n"
    )
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache")),
            *("--python-executable", str(tmp_path / "venv" / "bin" / "python"), script.name),
        ],
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if k not in ("MYPYPATH", "PYTHONPATH")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert 'Argument 1 to "record" has incompatible type "int"' in ran.stdout
    assert 'Revealed type is "def (group: ' in ran.stdout
    assert "py.typed" not in ran.stdout and "Found 1 error" in ran.stdout, ran.stdout
