"""Waiting for a job behind a gateway that is away for a moment, and for good."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from jupyter_to_job.cli import waiting
from jupyter_to_job.domain.errors import JobsError, NotFound, Unavailable
from jupyter_to_job.domain.job import Delivery, DeliveryState, Job, State

RUNNING = Job(
    "train-aaaaaaaa", "me", "train.ipynb", "small", "cpu", {}, (), False, None, None, 0,
    "kubernetes", State.RUNNING,
)  # fmt: skip
ENDED = replace(RUNNING, state=State.SUCCEEDED, delivery=Delivery(DeliveryState.NONE))


class Gateway:
    """Answers each read with the next of `answers`, the last one for ever. Its feed goes on."""

    pulls = False

    def __init__(self, *answers: Job | JobsError) -> None:
        self.answers = list(answers)

    def get(self, _name: str) -> Job:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, JobsError):
            raise answer
        return answer

    def changes(self, _names: Any) -> Iterator[None]:
        while True:
            yield None
            time.sleep(0.001)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "POLL_INTERVAL", 0.0)
    monkeypatch.setattr(waiting, "_RETRY_DELAY", 0.0)


def test_a_read_that_fails_is_tried_again() -> None:
    away = Unavailable("The gateway answered 503.")
    services: Any = {RUNNING.name: Gateway(RUNNING, away, away, RUNNING, away, ENDED)}
    assert waiting.wait_for([RUNNING], services) == [ENDED]


def test_the_first_read_is_tried_again_too() -> None:
    services: Any = {RUNNING.name: Gateway(Unavailable("The gateway answered 503."), ENDED)}
    assert waiting.wait_for([RUNNING], services) == [ENDED]


@pytest.mark.parametrize("answers", [[], [RUNNING]])
def test_who_gives_up_says_how_to_come_back(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answers: list[Job]
) -> None:
    monkeypatch.setattr(waiting, "GATEWAY_TIMEOUT", 0.05)
    away = Unavailable("The gateway answered 503.")
    services: Any = {RUNNING.name: Gateway(*answers, away)}
    with pytest.raises(Unavailable):
        waiting.wait_for([RUNNING], services)
    assert f"Return with: jupyter-to-job wait {RUNNING.name}" in capsys.readouterr().err


def test_a_deletion_is_told_also_where_the_waiting_is_given_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(waiting, "GATEWAY_TIMEOUT", 0.05)
    gone = replace(RUNNING, name="gone-aaaaaaaa")
    services: Any = {
        gone.name: Gateway(NotFound(f"There is no job {gone.name}.")),
        RUNNING.name: Gateway(Unavailable("The gateway answered 503.")),
    }
    with pytest.raises(Unavailable):
        waiting.wait_for([gone, RUNNING], services)
    said = capsys.readouterr().err
    assert f"There is no job {gone.name}. It was deleted meanwhile." in said
    assert f"Return with: jupyter-to-job wait {RUNNING.name}\n" in said
