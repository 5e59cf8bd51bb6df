"""The state function, over every combination of what can be observed."""

from __future__ import annotations

from itertools import product

import pytest

from jupyter_to_job.domain.job import State
from jupyter_to_job.domain.state import AttemptSeen, Ended, Placement, Verdict, decisive, judge

BEFORE, AT, AFTER = (
    "2026-11-21T09:00:00.000Z",
    "2026-11-21T09:30:00.000Z",
    "2026-11-21T10:00:00.000Z",
)

OUTCOMES = {
    "none": None,
    "succeeded": Ended(State.SUCCEEDED, None, None, AT),
    "raised": Ended(State.FAILED, "CellError", "Cell 1 raised.", AT),
    "terminated": Ended(State.FAILED, "Terminated", "Told to stop.", AT),
    "lost": Ended(State.FAILED, "Lost", "Gone.", AT),
}
CANCELS = {"no wish": None, "wished before": BEFORE, "wished after": AFTER}
RUNNING = AttemptSeen(1, alive=True, running=True)
STARTING = AttemptSeen(1, alive=True)
DEAD = AttemptSeen(1, alive=False, running=True)


def ended(number: int, outcome: str) -> AttemptSeen:
    return AttemptSeen(number, alive=False, running=True, ended=OUTCOMES[outcome])


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
        ((ended(1, "raised"),), None, "failed/CellError"),
        ((ended(1, "raised"),), BEFORE, "failed/CellError"),
        ((ended(1, "terminated"),), None, "failed/Terminated"),
        ((ended(1, "terminated"),), BEFORE, "cancelled"),
        ((ended(1, "terminated"),), AT, "cancelled"),
        ((ended(1, "terminated"),), AFTER, "failed/Terminated"),
        ((ended(1, "lost"),), None, "failed/Lost"),
        ((ended(1, "lost"),), BEFORE, "cancelled"),
        ((ended(1, "lost"),), AFTER, "failed/Lost"),
        # A second attempt: what runs now counts, and a success for good.
        ((ended(1, "lost"), AttemptSeen(2, alive=True)), None, "starting"),
        ((ended(1, "lost"), AttemptSeen(2, alive=True, running=True)), None, "running"),
        ((ended(1, "lost"), AttemptSeen(2, alive=False)), None, "failed/Lost"),
        ((ended(1, "raised"), ended(2, "lost")), None, "failed/Lost"),
        ((ended(1, "lost"), ended(2, "succeeded")), None, "succeeded"),
        ((ended(1, "succeeded"), ended(2, "lost")), None, "succeeded"),
        ((ended(1, "succeeded"), AttemptSeen(2, alive=True)), None, "succeeded"),
        ((AttemptSeen(1, alive=False), ended(2, "raised")), None, "failed/CellError"),
    ],
)
def test_table(attempts: tuple[AttemptSeen, ...], cancelled_at: str | None, expected: str) -> None:
    verdict = judge(attempts, Placement(), cancelled_at)
    shown = verdict.state.value + (f"/{verdict.reason}" if verdict.reason else "")
    assert shown == expected
    assert judge(tuple(reversed(attempts)), Placement(), cancelled_at) == verdict


def test_rules_over_all_combinations() -> None:
    """What people rely on holds for every combination of two attempts and a wish."""
    seen = [
        AttemptSeen(0, alive, running, OUTCOMES[outcome])
        for alive, running, outcome in product((True, False), (True, False), OUTCOMES)
    ]
    lists = [(), *((a,) for a in seen), *product(seen, seen)]
    for attempts, wish in product(lists, CANCELS.values()):
        numbered = tuple(
            AttemptSeen(n, a.alive, a.running, a.ended) for n, a in enumerate(attempts, start=1)
        )
        verdict = judge(numbered, Placement(), wish)
        last = numbered[-1] if numbered else None
        if last is None:
            assert verdict.state is State.QUEUED
        if verdict.state in (State.STARTING, State.RUNNING):
            assert last is not None
            assert last.alive and last.ended is None
        if any(a.ended and a.ended.state is State.SUCCEEDED for a in numbered):
            assert verdict == Verdict(State.SUCCEEDED)
        if verdict.state is State.CANCELLED:
            assert wish is not None
        assert (verdict.reason is None) == (verdict.state is not State.FAILED)


def test_a_job_without_an_attempt_shows_what_the_backend_knows() -> None:
    placement = Placement(position=3, reason="Unschedulable", message="No node has it.")
    expected = Verdict(State.QUEUED, "Unschedulable", "No node has it.", 3)
    assert judge((), placement, None) == expected
    assert judge((), Placement(starting=True), None).state is State.STARTING
    assert judge((RUNNING,), placement, None) == Verdict(State.RUNNING)


@pytest.mark.parametrize(
    ("attempts", "number"),
    [
        ((), None),
        ((RUNNING,), None),
        ((ended(1, "lost"), AttemptSeen(2, alive=True)), 1),
        ((ended(1, "raised"), ended(2, "lost")), 2),
        ((ended(1, "succeeded"), ended(2, "lost")), 1),
        ((ended(1, "succeeded"), ended(2, "succeeded")), 2),
    ],
)
def test_the_attempt_that_is_delivered(
    attempts: tuple[AttemptSeen, ...], number: int | None
) -> None:
    found = decisive(attempts)
    assert (found.number if found else None) == number


def test_final_states() -> None:
    assert {s for s in State if s.final} == {State.SUCCEEDED, State.FAILED, State.CANCELLED}
