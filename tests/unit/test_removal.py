"""Removing a published result where a part of it cannot be removed."""

from __future__ import annotations

import errno
import hashlib
import os
import time
from pathlib import Path

import pytest

from jupyter_to_job.workspace import Published, Workspace
from jupyter_to_job.workspace.publishing.removal import remove_published

NAME = "train-abcdefgh"


def test_an_error_leaves_the_notebook_by_which_the_result_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook, files = tmp_path / f"{NAME}.ipynb", [f"{NAME}/{name}" for name in ("a/x", "b/y")]
    notebook.write_bytes(b"{}")
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_bytes(b"x")
    published = Published(notebook.name, hashlib.sha256(b"{}").hexdigest())
    unlink = os.unlink

    def refuse_x(name: str, *, dir_fd: int) -> None:
        if name == "x":
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        unlink(name, dir_fd=dir_fd)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refuse_x)
        with pytest.raises(PermissionError):
            remove_published(Workspace(tmp_path), published, files, time.time())
    assert [(tmp_path / file).exists() for file in files] == [True, False]
    assert notebook.exists()
    removal = remove_published(Workspace(tmp_path), published, files, time.time())
    assert (removal.removed, removal.changed) == ((files[0], notebook.name), ())
    assert not list(tmp_path.iterdir())
