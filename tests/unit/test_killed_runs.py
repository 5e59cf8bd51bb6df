"""What an isolated run had created when its runner was killed: none of it is lost in silence."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from job_runner.attempt.finish import finish_job
from job_runner.protocol import documents, layout, liveness
from job_runner.protocol.created import CreatedFiles
from job_runner.protocol.outcome import Outcome, read_outcome
from jupyter_to_job.agent import agent as agent_module
from jupyter_to_job.agent.agent import Agent
from jupyter_to_job.agent.gateway_connection import GatewayConnection
from jupyter_to_job.exchange import FileExchange

from .agents import JOB, LINE, Start, run_in
from .agents import exchange as exchange
from .agents import folder as folder
from .agents import start as start
from .agents import stop as stop
from .agents import token as token
from .agents import url as url

LOST = "Files that it had created, if any, are lost with its pod."
Begin = Callable[[], tuple[Agent, liveness.Claim, Path]]


@pytest.fixture
def begin(
    url: str, exchange: FileExchange, folder: Path, start: Start, stop: threading.Event
) -> Begin:
    """Begin an isolated run; its pod was told to end. Return its scratch folder, too."""

    def begin() -> tuple[Agent, liveness.Claim, Path]:
        set_isolated(exchange, True)
        agent = start(url)
        agent.fetch()
        claim = liveness.claim_attempt(folder / JOB, 1)
        (claim.directory / layout.JOURNAL / "00000001.jsonl").write_bytes(LINE)
        scratch = claim.directory / layout.SCRATCH
        shutil.copytree(folder / JOB / layout.INPUTS, scratch)
        stop.set()
        return agent, claim, scratch

    return begin


def set_isolated(exchange: FileExchange, isolated: bool) -> None:
    path = exchange.directory(JOB) / layout.REQUEST
    request = documents.read_document(path) or {}
    documents.write_document(path, {**request, "isolated": isolated})


def finish(exchange: FileExchange) -> Outcome:
    """End the attempt as the controller does, whose pod is gone."""
    assert finish_job(exchange.directory(JOB), "OutOfMemory", "It was killed.") == 0
    outcome = read_outcome(exchange.directory(JOB) / "attempt-1")
    assert outcome is not None and outcome.reason == "OutOfMemory"
    return outcome


def sizes(outcome: Outcome) -> dict[str, int]:
    return {record.path: record.size for record in outcome.artifacts or ()}


def test_they_come_back(begin: Begin, exchange: FileExchange) -> None:
    """As after an end of the runner's own: what it made or changed, and regular files only."""
    agent, claim, scratch = begin()
    for name in ("model.pt", "data/plots/a \udcff.png", "__pycache__/a.pyc"):
        (scratch / name).parent.mkdir(parents=True, exist_ok=True)
        (scratch / name).write_bytes(b"made")
    (scratch / "empty").touch()
    (claim.directory / layout.ARTIFACTS).mkdir()
    (claim.directory / layout.ARTIFACTS / "collected").write_bytes(b"it was just being ended")
    claim.release()
    agent.send_until_ended()
    outcome = finish(exchange)
    expected = {"model.pt": 4, "data/plots/a \udcff.png": 4, "empty": 0, "collected": 23}
    assert sizes(outcome) == expected
    assert outcome.message == "It was killed."


def test_a_changed_input_comes_back(begin: Begin, exchange: FileExchange) -> None:
    agent, claim, scratch = begin()
    (scratch / "data" / "zeros.bin").write_bytes(b"12345")
    claim.release()
    agent.send_until_ended()
    assert sizes(finish(exchange)) == {"data/zeros.bin": 5}


@pytest.mark.parametrize("is_whole", [True, False])
def test_no_link_is_followed(
    begin: Begin, exchange: FileExchange, tmp_path: Path, is_whole: bool
) -> None:
    agent, claim, scratch = begin()
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "token").write_text("secret")
    if is_whole:
        shutil.rmtree(scratch)
        scratch.symlink_to(secrets)
    else:
        (scratch / "file").symlink_to(secrets / "token")
        (scratch / "folder").symlink_to(secrets)
        os.mkfifo(scratch / "pipe")
    claim.release()
    agent.send_until_ended()
    outcome = finish(exchange)
    assert outcome.artifacts == () and outcome.message == "It was killed."


def test_a_file_that_time_cut_is_lost_and_named(
    begin: Begin, exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, claim, scratch = begin()
    for name in ("a", "b", "c"):
        (scratch / name).write_bytes(b"1234")
    claim.release()
    append, clock = GatewayConnection.append, [0.0]

    def slow(gateway: GatewayConnection, path: str, *rest: Any) -> Any:
        clock[0] += 1.0 if layout.ARTIFACTS in path else 0.0
        return append(gateway, path, *rest)

    monkeypatch.setattr(GatewayConnection, "append", slow)
    monkeypatch.setattr(agent_module, "PIECE_SIZE", 2)
    monkeypatch.setattr(agent_module, "MAX_ARTIFACTS_TIME", 2.5)
    monkeypatch.setattr(agent_module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    agent.send_until_ended()
    artifacts = exchange.directory(JOB) / "attempt-1" / layout.ARTIFACTS
    assert (artifacts / "b").read_bytes() == b"12"  # a part of it came
    outcome = finish(exchange)
    assert sizes(outcome) == {"a": 4}
    assert outcome.message == (
        "It was killed. Of 3 files that it had created 2 could not be fetched from its pod, and "
        "are lost: b, c."
    )


def test_a_run_that_lives_keeps_its_files(begin: Begin, exchange: FileExchange) -> None:
    """It may still write them, and its own end collects them."""
    agent, claim, scratch = begin()
    (scratch / "model.pt").write_bytes(b"half")
    agent.send_until_ended()
    claim.release()
    assert not exchange.has(JOB, f"attempt-1/{layout.CREATED}")
    outcome = finish(exchange)
    assert outcome.artifacts == () and outcome.message == f"It was killed. {LOST}"


@pytest.mark.parametrize("damage", [None, b"noise", b'{"v": 1, "files": 1}'])
def test_a_pod_that_is_gone_at_once(
    begin: Begin, exchange: FileExchange, damage: bytes | None
) -> None:
    """Its node went away: nobody knows what there was."""
    agent, claim, _ = begin()
    agent._send_journal()
    claim.release()
    if damage is not None:
        (exchange.directory(JOB) / "attempt-1" / layout.CREATED).write_bytes(damage)
    assert finish(exchange).message == f"It was killed. {LOST}"


def test_a_run_in_the_workspace_has_lost_nothing(begin: Begin, exchange: FileExchange) -> None:
    agent, claim, _ = begin()
    agent._send_journal()
    claim.release()
    set_isolated(exchange, False)
    assert finish(exchange).message == "It was killed."


def test_a_run_with_an_outcome_names_its_files_there(
    url: str, exchange: FileExchange, folder: Path, start: Start
) -> None:
    agent = start(url)
    agent.fetch()
    (run_in(folder) / layout.SCRATCH).mkdir()
    agent.send_until_ended()
    assert not exchange.has(JOB, f"attempt-1/{layout.CREATED}")


def test_more_files_than_may_be_delivered(
    begin: Begin, exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, claim, scratch = begin()
    for name in ("a", "b", "c"):
        (scratch / name).write_bytes(b"1234")
    claim.release()
    monkeypatch.setattr(agent_module, "MAX_ARTIFACTS", 2)
    agent.send_until_ended()
    outcome = finish(exchange)
    assert len(sizes(outcome)) == 2
    assert "Of 3 files that it had created 1 could not be fetched" in str(outcome.message)


def test_a_list_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it cannot name is not sent, and counted."""
    monkeypatch.setattr(documents, "MAX_SENT_BYTES", 200)
    named = CreatedFiles.of({f"{number:03}": 1 for number in range(25)}, 3)
    assert 0 < len(named.files) < 10 and len(named.encode()) <= 200
    assert named.omitted == 25 - len(named.files) + 3
