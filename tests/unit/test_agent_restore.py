"""The exchange is put back from a backup while an agent sends what its run writes."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from job_runner.protocol import documents, layout
from jupyter_to_job.agent import agent as agent_module
from jupyter_to_job.agent.gateway_connection import GatewayConnection
from jupyter_to_job.domain.errors import Unavailable
from jupyter_to_job.exchange import FileExchange

from .agents import JOB, LINE, SEGMENT, Start, run_in
from .agents import exchange as exchange
from .agents import folder as folder
from .agents import start as start
from .agents import stop as stop
from .agents import token as token
from .agents import url as url
from .exchanges import OUTCOME

CLAIM, FIRST, SECOND, CREATED, ARTIFACT, END, OUTCOME_SENT = 0, 1, 3, 5, 6, 7, 9
"""Numbers of the agent's writes: two segments come in two pieces each, and are compared at the end.
"""


def replace_folder(source: Path, target: Path) -> None:
    """Copy a folder into the place of another one."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)


@pytest.mark.parametrize(
    ("backup_at", "restore_at", "is_away"),
    [
        (CLAIM, FIRST, False),
        (CLAIM, SECOND, False),
        (CLAIM, CREATED, False),
        (CLAIM, ARTIFACT, False),
        (CLAIM, END, False),
        (FIRST + 1, SECOND, False),
        (FIRST + 1, SECOND + 1, False),
        (FIRST + 1, CREATED, False),
        (FIRST + 1, ARTIFACT, False),
        (FIRST + 1, END, False),
        (FIRST + 1, OUTCOME_SENT, True),
        (ARTIFACT, END, True),
        (ARTIFACT, OUTCOME_SENT, True),
    ],
)
def test_a_run_arrives_whole(
    url: str,
    exchange: FileExchange,
    folder: Path,
    tmp_path: Path,
    start: Start,
    stop: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
    backup_at: int,
    restore_at: int,
    is_away: bool,
) -> None:
    """The backup is from before its claim, within its first segment, or before its artifact.

    `is_away`: a request finds the gateway away.
    """
    directory, backup = exchange.directory(JOB), tmp_path / "backup"
    write, writes = GatewayConnection._write, iter(range(100))

    def write_between(*arguments: Any) -> Any:
        number = next(writes)
        if number == backup_at:
            replace_folder(directory, backup)
        if number == restore_at:
            replace_folder(backup, directory)
            if is_away:
                raise Unavailable("The gateway is away.")
        return write(*arguments)

    monkeypatch.setattr(GatewayConnection, "_write", write_between)
    monkeypatch.setattr(agent_module, "PIECE_SIZE", len(LINE))
    monkeypatch.setattr(agent_module, "REFUSAL_PATIENCE", 0.0)
    agent = start(url)
    agent.fetch()
    second = SEGMENT.replace("1.jsonl", "2.jsonl")
    attempt = run_in(folder)
    for segment in (SEGMENT, second):
        (folder / JOB / segment).write_bytes(2 * LINE)
    (attempt / layout.ARTIFACTS).mkdir()
    (attempt / layout.ARTIFACTS / "a").write_bytes(b"x")
    stop.set()
    agent.send_until_ended()
    assert next(writes) > restore_at
    assert exchange.read(JOB, SEGMENT) == exchange.read(JOB, second) == 2 * LINE
    assert exchange.read(JOB, "attempt-1/artifacts/a") == b"x"
    assert exchange.read(JOB, "attempt-1/sent-outcome.json") == documents.encode(OUTCOME)


def test_a_gateway_that_fails_now_and_then_gets_the_outcome(
    url: str,
    exchange: FileExchange,
    folder: Path,
    start: Start,
    stop: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between two failures there are fewer requests than there are artifacts to compare."""
    write, writes = GatewayConnection._write, iter(range(1000))

    def write_or_fail(*arguments: Any) -> Any:
        number = next(writes, None)
        assert number is not None, "the outcome is never put"
        if number % 5 == 4:
            raise Unavailable("The gateway is away.")
        return write(*arguments)

    monkeypatch.setattr(GatewayConnection, "_write", write_or_fail)
    monkeypatch.setattr(agent_module, "MIN_RETRY_DELAY", 0.001)
    monkeypatch.setattr(agent_module, "MAX_RETRY_DELAY", 0.001)
    agent = start(url)
    agent.fetch()
    attempt = run_in(folder)
    (attempt / layout.ARTIFACTS).mkdir()
    for number in range(12):
        (attempt / layout.ARTIFACTS / f"{number}").write_bytes(b"x" * (number % 2))
    stop.set()
    agent.send_until_ended()
    assert exchange.read(JOB, "attempt-1/sent-outcome.json") == documents.encode(OUTCOME)
    names = {path.name for path in (exchange.directory(JOB) / "attempt-1/artifacts").iterdir()}
    assert names == {f"{number}" for number in range(12)}


def test_it_ends_if_another_pod_has_claimed_its_attempt(
    url: str,
    exchange: FileExchange,
    folder: Path,
    start: Start,
    stop: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agent_module, "REFUSAL_PATIENCE", 0.0)
    agent = start(url)
    agent.fetch()
    run_in(folder)
    claim = exchange.directory(JOB) / "attempt-1" / layout.RUNNER
    claim.write_bytes(documents.encode({"pod": "pod-2"}))
    stop.set()
    agent.send_until_ended()
    assert exchange.size(JOB, SEGMENT) is None
