"""A dead attempt that is being finished: dead for everybody, and finished by one process only."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from job_runner.protocol import documents, liveness

from .jobs import Job, notebook


def test_who_finishes_does_not_bring_the_attempt_to_life(tmp_path: Path) -> None:
    claim = liveness.claim_attempt(tmp_path, 1)
    assert liveness.is_alive(claim.directory)
    claim.release()
    finishing = liveness.take_over(claim.directory)
    assert not liveness.is_alive(claim.directory)
    with pytest.raises(liveness.AttemptAlive):
        liveness.take_over(claim.directory)
    finishing.release()
    liveness.take_over(claim.directory).release()


def test_nobody_finishes_what_lives(tmp_path: Path) -> None:
    claim = liveness.claim_attempt(tmp_path, 1)
    with pytest.raises(liveness.AttemptAlive):
        liveness.take_over(claim.directory)
    claim.release()


def test_the_drafts_of_a_killed_writer_go(tmp_path: Path) -> None:
    (tmp_path / ".0123.tmp").touch()
    documents.write_document(tmp_path / "kept.json", {})
    documents.remove_drafts(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kept.json"]


def test_a_claim_that_was_killed_leaves_nothing(job: Callable[..., Job]) -> None:
    made = job(notebook("1"))
    (made.directory / ".attempt-0123456789abcdef").mkdir()
    assert made.finish() == 0
    assert list(made.directory.glob(".*")) == []
