"""What `doctor` offers for a damaged job: it never offers to change what may be sound."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from job_runner.protocol import layout, liveness
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.service.damage import Damage, find_damage

from . import exchanges

NAME = "train-aaaaaaaa"


@pytest.fixture
def exchange(tmp_path: Path) -> FileExchange:
    return FileExchange(tmp_path)


def only_damage(exchange: FileExchange) -> Damage:
    (damage,) = find_damage(exchange)
    assert damage.job == NAME
    return damage


def test_what_a_newer_version_wrote_is_left_alone(exchange: FileExchange) -> None:
    request = exchanges.add(exchange, NAME) / layout.REQUEST
    request.write_text(json.dumps({**json.loads(request.read_bytes()), "v": 99}))
    damage = only_damage(exchange)
    assert damage.mend is None and "update" in damage.remedy


@pytest.mark.parametrize("path", [layout.REQUEST, f"attempt-1/{layout.OUTCOME}", layout.HELD])
def test_what_cannot_be_read_now_is_left_alone(
    exchange: FileExchange, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the disk has an error, or an admin has changed the mode."""
    directory = exchanges.add(exchange, NAME)
    exchanges.end(directory)
    (directory / path).touch()
    open_any = os.open

    def refuse(opened: Any, *arguments: Any, **options: Any) -> int:
        if str(opened).endswith(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(opened))
        return open_any(opened, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)
    damage = only_damage(exchange)
    assert damage.mend is None and "Permission denied" in damage.message


def test_what_runs_is_not_deleted(exchange: FileExchange) -> None:
    directory = exchanges.add(exchange, NAME)
    claim = liveness.claim_attempt(directory, 1)
    (directory / layout.REQUEST).write_text("{")
    damage = only_damage(exchange)
    assert damage.mend is None and "when it has ended" in damage.remedy
    claim.release()
    mend = only_damage(exchange).mend
    assert mend is not None
    mend()
    assert not directory.exists()
