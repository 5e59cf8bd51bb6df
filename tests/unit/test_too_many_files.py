"""A run on a cluster creates more than is delivered: no part of a file is taken for the whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from job_runner.attempt import artifacts, finish
from job_runner.attempt.finalize import write_ending
from job_runner.diagnosis.endings import SUCCESS
from job_runner.protocol import documents, layout, liveness
from job_runner.protocol.outcome import Outcome, read_outcome
from job_runner.protocol.result.result import write_result
from job_runner.resources.usage import Usage
from jupyter_to_job.agent import agent as agent_module
from jupyter_to_job.agent.agent import Agent
from jupyter_to_job.agent.gateway_connection import GatewayConnection
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.service import delivery

from .agents import JOB, LINE, Start
from .agents import exchange as exchange
from .agents import folder as folder
from .agents import start as start
from .agents import stop as stop
from .agents import token as token
from .agents import url as url

End = Callable[[], Agent]


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a run have 15 bytes of files, in place of 10 GiB."""
    for module in (artifacts, finish):
        monkeypatch.setattr(module, "MAX_ARTIFACT_BYTES", 15)


@pytest.fixture
def end(url: str, folder: Path, start: Start) -> End:
    """Have a run end by itself that created 16 bytes, and return its agent."""

    def end() -> Agent:
        agent = start(url)
        agent.fetch()
        claim = liveness.claim_attempt(folder / JOB, 1)
        (claim.directory / layout.JOURNAL / "00000001.jsonl").write_bytes(LINE)
        made = claim.directory / layout.ARTIFACTS
        made.mkdir()
        for name, data in {"a.csv": b"1234", "model.ckpt": b"weights!", "z.csv": b"1234"}.items():
            (made / name).write_bytes(data)
        result = write_result(folder / JOB, claim.directory)
        write_ending(folder / JOB, claim.directory, SUCCESS, result, 1.0, Usage().to_json())
        claim.release()
        return agent

    return end


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the time for artifacts be over after three pieces of two bytes."""
    append, clock = GatewayConnection.append, [0.0]

    def append_slowly(gateway: GatewayConnection, path: str, *rest: Any) -> Any:
        clock[0] += 1.0 if layout.ARTIFACTS in path else 0.0
        return append(gateway, path, *rest)

    monkeypatch.setattr(GatewayConnection, "append", append_slowly)
    monkeypatch.setattr(agent_module, "PIECE_SIZE", 2)
    monkeypatch.setattr(agent_module, "MAX_ARTIFACTS_TIME", 2.5)
    pretend = SimpleNamespace(monotonic=lambda: clock[0], sleep=lambda _: None)
    monkeypatch.setattr(agent_module, "time", pretend)


def finish_attempt(exchange: FileExchange) -> tuple[Outcome, dict[str, bytes]]:
    """End the attempt as the controller does; return what is delivered, too."""
    assert finish.finish_job(exchange.directory(JOB), "Lost", None) == 0
    outcome = read_outcome(exchange.directory(JOB) / "attempt-1")
    deliverable = delivery.find_deliverable(exchange, JOB)
    assert outcome is not None and deliverable is not None
    root = exchange.directory(JOB) / "attempt-1" / layout.ARTIFACTS
    return outcome, {file.path: (root / file.path).read_bytes() for file in deliverable.artifacts}


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("has_outcome", [True, False], ids=["sent", "its node went away"])
def test_a_file_that_time_cut_is_not_delivered(
    end: End, exchange: FileExchange, has_outcome: bool
) -> None:
    agent = end()
    if has_outcome:
        agent.send_until_ended()
    else:
        agent._send_journal()
        agent._send_artifacts()
    cut = exchange.directory(JOB) / "attempt-1" / layout.ARTIFACTS / "model.ckpt"
    assert cut.read_bytes() == b"we"
    outcome, delivered = finish_attempt(exchange)
    assert outcome.state == ("succeeded" if has_outcome else "failed")
    assert delivered == {"a.csv": b"1234"}
    assert (outcome.message or "").endswith(
        "Of 3 files that it had created 2 could not be fetched from its pod, and are lost: "
        "model.ckpt, z.csv. At most 10,000 files and 15 bytes of a run are delivered."
    )


def test_what_came_whole_is_all_there(end: End, exchange: FileExchange) -> None:
    """Its delivery says that it is too much."""
    end().send_until_ended()
    outcome, delivered = finish_attempt(exchange)
    assert outcome.artifacts is None and outcome.message is None
    assert sum(map(len, delivered.values())) == 16


def test_more_files_than_are_sent(
    end: End, exchange: FileExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (artifacts, finish, agent_module):
        monkeypatch.setattr(module, "MAX_ARTIFACTS", 2)
    end().send_until_ended()
    outcome, delivered = finish_attempt(exchange)
    assert len(delivered) == 2
    assert outcome.message == (
        "Of 3 files that it had created 1 could not be fetched from its pod, and are lost. "
        "At most 2 files and 15 bytes of a run are delivered."
    )


def test_a_restarted_agent_goes_on(
    end: End, exchange: FileExchange, url: str, start: Start
) -> None:
    agent = end()
    agent._send_artifacts()
    again = start(url)
    again.fetch()
    again.send_until_ended()
    assert len(finish_attempt(exchange)[1]) == 3


@pytest.mark.usefixtures("slow")
def test_an_outcome_that_is_too_long_for_a_document(
    end: End, exchange: FileExchange, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names no files, either."""
    for module in (artifacts, finish):
        monkeypatch.setattr(module, "MAX_ARTIFACT_BYTES", 16)
    agent = end()
    size = (folder / JOB / "attempt-1" / layout.OUTCOME).stat().st_size
    monkeypatch.setattr(documents, "MAX_SENT_BYTES", size - 1)
    agent.send_until_ended()
    outcome, delivered = finish_attempt(exchange)
    assert outcome.artifacts is None and delivered == {"a.csv": b"1234"}
    assert outcome.message == (
        "Of 3 files that it had created 2 could not be fetched from its pod, and are lost: "
        "model.ckpt, z.csv."
    )
