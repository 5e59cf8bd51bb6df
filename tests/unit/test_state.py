"""The state function: a table of cases, and its rules over every combination of what is seen."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from jupyter_to_job.domain.job import State
from jupyter_to_job.domain.reasons import REASONS
from jupyter_to_job.domain.state import (
    AttemptStatus,
    Ended,
    JobStatus,
    Placement,
    compute_state,
    delivered_attempt,
    with_reason_of_host,
)

BEFORE, AT, AFTER = (
    "2026-11-21T09:00:00.000Z",
    "2026-11-21T09:30:00.000Z",
    "2026-11-21T10:00:00.000Z",
)

OUTCOMES: dict[str, Ended | None] = {
    "none": None,
    "succeeded": Ended(State.SUCCEEDED, None, None, AT),
    **{r: Ended(State.FAILED, r, f"It was {r}.", AT) for r in (*REASONS, "OfANewerRunner")},
}
STOPPED = {"Terminated", "Lost"}
PLACEMENTS = [
    Placement(),
    Placement(position=2),
    Placement(starting=True),
    Placement(position=1, reason="Unschedulable", message="No node has it."),
]
CANCELS = {"no wish": None, "wished before": BEFORE, "at the same time": AT, "after": AFTER}
NOW = "2026-11-21T11:00:00.000Z"
FEW = {None, "CellError", "Terminated", "Lost"}
Seen = tuple[tuple[AttemptStatus, ...], Placement, "str | None", JobStatus]
RUNNING = AttemptStatus(1, alive=True, running=True)
STARTING = AttemptStatus(1, alive=True)
DEAD = AttemptStatus(1, alive=False, running=True)


def ended(number: int, outcome: str) -> AttemptStatus:
    return AttemptStatus(
        number, alive=False, running=True, ended=OUTCOMES[outcome], has_result=True
    )


def retried(number: int, outcome: str) -> AttemptStatus:
    return replace(ended(number, outcome), retried=True)


@pytest.mark.parametrize(
    ("attempts", "cancelled_at", "expected"),
    [
        ((), None, "queued"),
        ((), BEFORE, "queued"),
        ((STARTING,), None, "starting"),
        ((STARTING,), BEFORE, "starting"),
        ((RUNNING,), None, "running"),
        ((RUNNING,), BEFORE, "running"),
        ((DEAD,), None, "failed/Lost"),
        ((DEAD,), BEFORE, "cancelled"),
        ((ended(1, "succeeded"),), None, "succeeded"),
        ((ended(1, "succeeded"),), BEFORE, "succeeded"),
        ((ended(1, "CellError"),), None, "failed/CellError"),
        ((ended(1, "CellError"),), BEFORE, "failed/CellError"),
        ((ended(1, "Terminated"),), None, "failed/Terminated"),
        ((ended(1, "Terminated"),), BEFORE, "cancelled"),
        ((ended(1, "Terminated"),), AT, "cancelled"),
        ((ended(1, "Terminated"),), AFTER, "failed/Terminated"),
        ((ended(1, "Lost"),), None, "failed/Lost"),
        ((ended(1, "Lost"),), BEFORE, "cancelled"),
        ((ended(1, "Lost"),), AFTER, "failed/Lost"),
        # A second attempt: what runs now counts, and a success for good.
        ((ended(1, "Lost"), AttemptStatus(2, alive=True)), None, "starting"),
        ((ended(1, "Lost"), AttemptStatus(2, alive=True, running=True)), None, "running"),
        ((ended(1, "Lost"), AttemptStatus(2, alive=False)), None, "failed/Lost"),
        ((ended(1, "CellError"), ended(2, "Lost")), None, "failed/Lost"),
        ((ended(1, "Lost"), ended(2, "succeeded")), None, "succeeded"),
        ((ended(1, "succeeded"), ended(2, "Lost")), None, "succeeded"),
        ((ended(1, "succeeded"), AttemptStatus(2, alive=True)), None, "succeeded"),
        ((AttemptStatus(1, alive=False), ended(2, "CellError")), None, "failed/CellError"),
        # An attempt that the cluster ended and starts again is not the end.
        ((retried(1, "Evicted"),), None, "queued"),
        ((retried(1, "Evicted"), AttemptStatus(2, alive=True)), None, "starting"),
        ((retried(1, "Terminated"), ended(2, "CellError")), None, "failed/CellError"),
        ((retried(1, "NodeLost"), retried(2, "Evicted"), ended(3, "succeeded")), None, "succeeded"),
        ((retried(1, "succeeded"),), None, "succeeded"),
        ((retried(1, "succeeded"), ended(2, "Lost")), None, "succeeded"),
    ],
)
def test_table(
    attempts: tuple[AttemptStatus, ...], cancelled_at: str | None, expected: str
) -> None:
    verdict = compute_state(attempts, Placement(), cancelled_at)
    shown = verdict.state.value + (f"/{verdict.reason}" if verdict.reason else "")
    assert shown == expected
    assert compute_state(tuple(reversed(attempts)), Placement(), cancelled_at) == verdict


@pytest.mark.parametrize(
    ("of_the_runner", "of_the_cluster", "shown"),
    [
        ("Terminated", "Evicted", "Evicted"),
        ("Lost", "NodeLost", "NodeLost"),
        ("Terminated", None, "Terminated"),
        ("CellError", "Preempted", "CellError"),
        ("OutOfMemory", "Evicted", "OutOfMemory"),
    ],
)
def test_the_cluster_knows_why_a_run_was_ended(
    of_the_runner: str, of_the_cluster: str | None, shown: str
) -> None:
    end = OUTCOMES[of_the_runner]
    assert end is not None
    found = with_reason_of_host(end, of_the_cluster, "The node was drained.")
    assert found.reason == shown
    assert (found.message == "The node was drained.") == (shown != of_the_runner)
    succeeded = OUTCOMES["succeeded"]
    assert succeeded and with_reason_of_host(succeeded, "Evicted", "Late.") == succeeded


def every_attempt() -> list[AttemptStatus]:
    return [
        AttemptStatus(0, alive, running, outcome)
        for alive, running, outcome in product((True, False), (True, False), OUTCOMES.values())
    ]


@pytest.fixture(scope="module")
def combinations() -> list[Seen]:
    """Everything that can be observed of a job: what is seen, and what it is judged to be."""
    seen = every_attempt()
    # Of two attempts the kinds of end matter, and not each reason.
    few = [a for a in seen if a.ended is None or a.ended.reason in FEW]
    found = []
    for attempts in [(), *((a,) for a in seen), *product(few, few)]:
        numbered = tuple(replace(a, number=n) for n, a in enumerate(attempts, start=1))
        for wish, placement in product(CANCELS.values(), PLACEMENTS):
            verdict = compute_state(numbered, placement, wish)
            found.append((numbered, placement, wish, verdict))
    return found


def test_there_are_many(combinations: list[Seen]) -> None:
    assert len(combinations) > 5_000


def test_a_queued_job_is_never_called_stopped(combinations: list[Seen]) -> None:
    for attempts, placement, _, verdict in combinations:
        if not attempts:
            assert verdict.state is (State.STARTING if placement.starting else State.QUEUED)
            assert (verdict.reason, verdict.message) == (placement.reason, placement.message)
            assert verdict.position == placement.position
        else:
            assert verdict.state is not State.QUEUED
            assert verdict.position is None


def test_one_whose_process_is_gone_is_never_called_running(combinations: list[Seen]) -> None:
    for attempts, _, _, verdict in combinations:
        if attempts and not verdict.state.final:
            assert attempts[-1].alive and attempts[-1].ended is None
            running = verdict.state is State.RUNNING
            assert running is attempts[-1].running


def test_one_that_runs_is_never_called_ended(combinations: list[Seen]) -> None:
    for attempts, _, _, verdict in combinations:
        lives = bool(attempts) and attempts[-1].alive and attempts[-1].ended is None
        if lives and not any(has_succeeded(a) for a in attempts):
            assert not verdict.state.final


def test_a_run_that_had_succeeded_stays_succeeded(combinations: list[Seen]) -> None:
    for attempts, _, _, verdict in combinations:
        assert (verdict == JobStatus(State.SUCCEEDED)) is any(has_succeeded(a) for a in attempts)


def test_cancelled_is_what_was_stopped_after_a_wish(combinations: list[Seen]) -> None:
    """Neither a failure of its own becomes cancelled, nor a death before the wish."""
    for attempts, _, wish, verdict in combinations:
        if verdict.state is State.CANCELLED:
            last = attempts[-1]
            assert wish is not None
            assert last.ended is None or last.ended.reason in STOPPED
            assert last.ended is None or wish <= last.ended.finished


def test_a_reason_goes_with_a_failure(combinations: list[Seen]) -> None:
    for attempts, _, _, verdict in combinations:
        if attempts and verdict.state is not State.STARTING:  # it may say what keeps it
            assert (verdict.reason is not None) is (verdict.state is State.FAILED)
            assert (verdict.message is not None) is (verdict.state is State.FAILED)


def test_a_wish_changes_no_state_but_to_cancelled(combinations: list[Seen]) -> None:
    for attempts, placement, wish, verdict in combinations:
        without = compute_state(attempts, placement, None)
        if wish is not None and verdict != without:
            assert (without.state, verdict.state) == (State.FAILED, State.CANCELLED)
            assert without.reason in STOPPED


def test_finishing_what_died_changes_nothing(combinations: list[Seen]) -> None:
    """A dead run is called at once what its outcome will say: Terminated where there is a wish."""
    for attempts, placement, wish, verdict in combinations:
        last = attempts[-1] if attempts else None
        if last is not None and not last.alive and last.ended is None:
            reason, moment = ("Lost", AT) if wish is None else ("Terminated", NOW)
            finished = Ended(State.FAILED, reason, verdict.message, moment)
            after = compute_state((*attempts[:-1], replace(last, ended=finished)), placement, wish)
            assert (after.state, after.reason) == (verdict.state, verdict.reason)


def has_succeeded(attempt: AttemptStatus) -> bool:
    return attempt.ended is not None and attempt.ended.state is State.SUCCEEDED


def test_a_job_without_an_attempt_shows_what_the_backend_knows() -> None:
    placement = Placement(position=3, reason="Unschedulable", message="No node has it.")
    expected = JobStatus(State.QUEUED, "Unschedulable", "No node has it.", 3)
    assert compute_state((), placement, None) == expected
    assert compute_state((), Placement(starting=True), None).state is State.STARTING
    assert compute_state((RUNNING,), placement, None) == JobStatus(State.RUNNING)


@pytest.mark.parametrize(
    ("attempts", "number"),
    [
        ((), None),
        ((RUNNING,), None),
        ((ended(1, "Lost"), AttemptStatus(2, alive=True)), None),
        ((ended(1, "CellError"), ended(2, "Lost")), 2),
        ((ended(1, "succeeded"), ended(2, "Lost")), 1),
        ((ended(1, "succeeded"), ended(2, "succeeded")), 2),
        # The pod after it never ran: what the first one printed is kept.
        ((retried(1, "Evicted"),), None),
        ((retried(1, "Evicted"), replace(ended(2, "Unschedulable"), has_result=False)), 1),
        ((retried(1, "Evicted"), ended(2, "CellError")), 2),
        ((replace(ended(1, "NoKernel"), has_result=False),), None),
    ],
)
def test_the_attempt_that_is_delivered(
    attempts: tuple[AttemptStatus, ...], number: int | None
) -> None:
    found = delivered_attempt(attempts)
    assert (found.number if found else None) == number


def test_final_states() -> None:
    assert {s for s in State if s.final} == {State.SUCCEEDED, State.FAILED, State.CANCELLED}
