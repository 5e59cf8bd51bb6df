"""Signing holds nobody up: a database of signatures on a network disk may hang for ever."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import time
from pathlib import Path

import nbformat
import pytest
from nbformat.sign import NotebookNotary

from jupyter_to_job.workspace.paths import SpecialFile
from jupyter_to_job.workspace.publishing import sign

from ..processes import until


def test_a_signature_that_hangs_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hang(path: Path, *_: object) -> None:
        path.with_suffix(".begun").touch()
        while True:
            time.sleep(1)

    monkeypatch.setattr(sign, "_is_imported", True)
    monkeypatch.setattr(sign, "_sign", hang)
    notebook = tmp_path / "a.ipynb"
    notebook.write_bytes(b"{}")
    sign.sign(notebook, "")
    (copy,) = multiprocessing.active_children()
    until(notebook.with_suffix(".begun").exists, "the signing began")
    assert copy.is_alive()
    copy.kill()
    copy.join()


def test_only_what_was_published_is_signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a shared folder somebody else may replace the file before it is signed."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    notebook = tmp_path / "a.ipynb"
    for content, is_signed in (("ours", True), ("theirs", False)):
        written = nbformat.writes(nbformat.v4.new_notebook(metadata={"by": content})).encode()
        published = hashlib.sha256(written).hexdigest()
        notebook.write_bytes(written if is_signed else written + b"\n")
        sign._sign(notebook, published, len(written) + 1)
        assert NotebookNotary().check_signature(nbformat.read(notebook, 4)) == is_signed


def test_what_is_no_file_any_more_is_not_waited_for(tmp_path: Path) -> None:
    """Somebody put a pipe, or a link to an endless device, where the result was."""
    os.mkfifo(tmp_path / "pipe.ipynb")
    (tmp_path / "link.ipynb").symlink_to("/dev/zero")
    for name in ("pipe.ipynb", "link.ipynb"):
        with pytest.raises(SpecialFile):
            sign._sign(tmp_path / name, "", 1)
