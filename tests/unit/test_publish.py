"""Publishing where the file system offers less than it should."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NoReturn

import pytest

from jupyter_to_job.workspace import publish
from jupyter_to_job.workspace.publish import CannotPublish


@pytest.fixture
def without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object) -> NoReturn:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", link)


@pytest.mark.usefixtures("without_links")
def test_without_hard_links(tmp_path: Path) -> None:
    assert publish(tmp_path, "a.ipynb", None, "a-abcd2345", b"one").path == "a-abcd2345.ipynb"
    assert publish(tmp_path, "a.ipynb", None, "a-abcd2345", b"one").path == "a-abcd2345.ipynb"
    assert publish(tmp_path, "a.ipynb", None, "a-abcd2345", b"two").path == "a-abcd2345-2.ipynb"
    assert (tmp_path / "a-abcd2345.ipynb").read_bytes() == b"one"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_link_with_the_name_is_left_alone(tmp_path: Path) -> None:
    workspace, outside = tmp_path / "workspace", tmp_path / "outside.ipynb"
    workspace.mkdir()
    (workspace / "a-abcd2345.ipynb").symlink_to(outside)
    with pytest.raises(CannotPublish):
        publish(workspace, "a.ipynb", None, "a-abcd2345", b"one")
    assert not outside.exists()
    inside = workspace / "b-abcd2345.ipynb"
    inside.symlink_to(workspace / "target")
    assert publish(workspace, "b.ipynb", None, "b-abcd2345", b"one").path == "b-abcd2345-2.ipynb"
    assert not (workspace / "target").exists()


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(_: int) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(CannotPublish, match="No space"):
        publish(tmp_path, "a.ipynb", None, "a-abcd2345", b"one")
    assert list(tmp_path.iterdir()) == []


def test_the_mode_is_the_users(tmp_path: Path) -> None:
    publish(tmp_path, "a.ipynb", None, "a-abcd2345", b"one")
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / "a-abcd2345.ipynb").stat().st_mode & 0o777 == 0o666 & ~mask
