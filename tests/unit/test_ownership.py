"""Whose folders count in an exchange."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_to_job.domain.errors import Unavailable
from jupyter_to_job.exchange import FileExchange, ownership

from . import exchanges

NOBODY = 65534
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="root alone can give files away")


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    ownership._owner_of_new_files.cache_clear()
    yield
    ownership._owner_of_new_files.cache_clear()


def _give_away(root: Path) -> FileExchange:
    exchange = FileExchange(root)
    job = exchanges.add(exchange, "train-aaaaaaaa")
    for path in (root, job):
        os.chown(path, NOBODY, -1)
    return exchange


def test_what_another_user_put_there_is_ignored(tmp_path: Path) -> None:
    exchange = _give_away(tmp_path / "exchange")
    assert FileExchange(exchange.root).jobs() == set()
    with pytest.raises(Unavailable, match="belongs to another user"):
        exchanges.add(FileExchange(exchange.root), "more-aaaaaaaa")


def test_a_file_system_that_stores_all_files_as_one_user_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As NFS with `all_squash` does: a file made now belongs to that user, too."""
    make_file = tempfile.TemporaryFile

    def make_squashed(**options: Any) -> Any:
        file = make_file(**options)
        os.fchown(file.fileno(), NOBODY, -1)
        return file

    exchange = _give_away(tmp_path / "exchange")
    monkeypatch.setattr(tempfile, "TemporaryFile", make_squashed)
    assert FileExchange(exchange.root).jobs() == {"train-aaaaaaaa"}
    exchanges.add(FileExchange(exchange.root), "more-aaaaaaaa")


def test_the_volume_of_a_gateway_may_have_changed_its_user(tmp_path: Path) -> None:
    exchange = _give_away(tmp_path / "exchange")
    assert FileExchange(exchange.root, is_private=False).jobs() == {"train-aaaaaaaa"}
