"""When a queue's jobs start: the dispatcher's own rule, played through with earlier run times."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_to_job.backends.local.forecast import forecast_starts
from jupyter_to_job.backends.local.queue import in_queue_order, start
from jupyter_to_job.backends.local.slots import Allocation, Machine, SlotReport, Slots
from jupyter_to_job.cli.display import waits
from jupyter_to_job.domain.wait import Estimate, JobWait, Need
from jupyter_to_job.exchange import Request
from jupyter_to_job.exchange.index import IndexRow
from jupyter_to_job.service.reading import past_runs
from jupyter_to_job.service.reading.past_runs import MAX_RUNS, Draws, PastRuns

from .test_queue import GPU, request


def report(setting: str, **running: dict[str, int]) -> SlotReport:
    machine = Machine(setting)
    allocations = {
        name: Allocation({key: Decimal(amount) for key, amount in demand.items()})
        for name, demand in running.items()
    }
    return SlotReport(machine.total, True, allocations)


def starts(slots: SlotReport, queue: list[Request], **seconds: float) -> list[float | None]:
    return forecast_starts(
        slots, queue, lambda r: seconds.get(r.name), lambda name: seconds.get(name)
    )


@pytest.mark.parametrize(
    ("slots", "queue", "seconds", "expected"),
    [
        # One after the other on one core, behind what runs.
        (
            report("cpu=1,memory=8", now={"cpu": 1}),
            [request("a", cpu=1), request("b", cpu=1)],
            {"now": 5.0, "a": 10.0, "b": 1.0},
            [5.0, 15.0],
        ),
        # A small one does not overtake a large one on what that waits for.
        (
            report("cpu=2,memory=8", now={"cpu": 1}),
            [request("big", cpu=2), request("small", cpu=1)],
            {"now": 5.0, "big": 10.0, "small": 1.0},
            [5.0, 15.0],
        ),
        # One for CPUs passes one for the GPU.
        (
            report(f"cpu=4,memory=8,{GPU}=1", now={"cpu": 1, GPU: 1}),
            [request("gpu", cpu=1, gpu=1), request("free", memory=1)],
            {"now": 7.0, "gpu": 1.0, "free": 1.0},
            [7.0, 0.0],
        ),
        # Nobody knows how long one runs: the others behind it start at an unknown time.
        (
            report("cpu=1,memory=8"),
            [request("new", cpu=1), request("b", cpu=1)],
            {"b": 1.0},
            [0.0, None],
        ),
    ],
)
def test_the_rule(
    slots: SlotReport,
    queue: list[Request],
    seconds: dict[str, float],
    expected: list[float | None],
) -> None:
    assert starts(slots, queue, **seconds) == expected


def test_a_groups_limit_holds_back_no_other() -> None:
    queue = [
        replace(request(name, cpu=1), group=group, group_limit=limit)
        for name, group, limit in (("a", "g", 1), ("b", "g", 1), ("c", None, None))
    ]
    assert starts(report("cpu=4,memory=8"), queue, a=3.0, b=3.0, c=3.0) == [0.0, 3.0, 0.0]


requests = st.lists(
    st.builds(
        lambda cpu, gpu, memory, priority: (cpu, gpu, memory, priority),
        st.integers(0, 4),
        st.integers(0, 2),
        st.integers(0, 5),
        st.integers(-1, 1),
    ),
    max_size=12,
)


@given(requests)
def test_what_starts_at_once_is_what_the_dispatcher_starts(
    asked: list[tuple[int, int, int, int]],
) -> None:
    queue = in_queue_order(
        request(f"{n:02}", priority, cpu=cpu, gpu=gpu, memory=memory)
        for n, (cpu, gpu, memory, priority) in enumerate(asked)
    )
    setting = f"cpu=4,memory=5,{GPU}=2"
    machine = Machine(setting)
    assert machine.probe([GPU], timeout=5.0)
    started = [r.name for r, _ in start(queue, Slots(machine))]
    found = forecast_starts(report(setting), queue, lambda _: 1.0, lambda _: None)
    at_once = [r.name for r, moment in zip(queue, found, strict=True) if moment == 0.0]
    assert at_once == started
    assert None not in found  # each fits, and each ends


def row(name: str, seconds: float, source: str = "/w/a.ipynb", **changes: Any) -> IndexRow:
    job = {
        "flavor": changes.pop("flavor", "small"),
        "device": "cpu",
        "started": "2026-11-24T10:00:00.000Z",
        "finished": f"2026-11-24T10:{int(seconds // 60):02}:{seconds % 60:06.3f}Z",
    }
    values = {
        "name": name, "stamp": "1", "owner": "me", "source": source, "workspace": "/w",
        "submitted": name, "state": "succeeded", "delivery": "delivered", "group": "",
        "document": json.dumps(job), **changes,
    }  # fmt: skip
    return IndexRow(**values)


def asked(source: str = "/w/a.ipynb", flavor: str = "small", **changes: Any) -> Request:
    return replace(request("x", cpu=1), source=source, flavor=flavor, device="cpu", **changes)


def test_runs_of_the_same_notebook_and_flavor_count() -> None:
    past = PastRuns()
    past.update([
        row("a", 60), row("b", 66), row("c", 600, flavor="large"), row("d", 5, "/w/b.ipynb"),
        row("e", 1, state="failed"), row("f", 1, document="{}"),
    ])  # fmt: skip
    assert list(past.own(asked())) == [66.0, 60.0]
    assert list(past.similar(asked(flavor="new"))) == [600.0, 66.0, 60.0]
    assert list(past.similar(asked("/w/new.ipynb"))) == [5.0, 66.0, 60.0]
    assert list(past.similar(asked("/w/new.ipynb", "new"))) == []
    assert past.estimate(asked("/w/new.ipynb")) is None
    estimate = past.estimate(asked())
    assert estimate is not None and estimate.runs == 2
    assert 30 < estimate.low < estimate.likely < estimate.high < 130
    limited = past.estimate(asked(max_runtime=10))
    assert limited is not None and limited.high == 10


def test_an_estimate_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page has hundreds of waiting jobs, and is asked for all the time."""
    past = PastRuns()
    rows = [row("a", 60)]
    past.update(rows)
    first, limited = past.estimate(asked()), past.estimate(asked(max_runtime=10))
    with monkeypatch.context() as patch:
        patch.setattr(Draws, "draw", None)  # calling it would fail
        assert (past.estimate(asked()), past.estimate(asked(max_runtime=10))) == (first, limited)
        past.update(rows)
        assert past.estimate(asked()) == first
    past.update([*rows, row("b", 600)])
    newer = past.estimate(asked())
    assert first is not None and newer is not None
    assert newer.runs == 2 and newer.high > first.high


def test_more_runs_make_an_estimate_narrower() -> None:
    widths = []
    for count in (1, 5, MAX_RUNS, 3 * MAX_RUNS):
        past = PastRuns()
        past.update([row(f"{n:03}", 100) for n in range(count)])
        estimate = past.estimate(asked())
        assert estimate is not None and estimate.runs == min(count, MAX_RUNS)
        widths.append(estimate.high / estimate.low)
    assert widths[0] > widths[1] > widths[2] == widths[3] > 1


def test_a_run_that_takes_longer_than_all_before_it() -> None:
    past = PastRuns()
    past.update([row("a", 10)])
    for number in range(10):
        left = Draws(past, number).remaining(asked(), 1000.0)
        assert left is not None and left == pytest.approx(250.0)
        early = Draws(past, number).remaining(asked(), 1.0)
        assert early is not None and 0 < early < 100


def test_a_thousand_rows_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[IndexRow] = []
    run_of = past_runs._run_of

    def count(row: IndexRow) -> Any:
        read.append(row)
        return run_of(row)

    monkeypatch.setattr(past_runs, "_run_of", count)
    rows = [row(f"{n:04}", 60) for n in range(1000)]
    past = PastRuns()
    past.update(rows)
    assert len(read) == 1000
    past.update([*rows, row("new", 60)])
    assert len(read) == 1001
    assert len(past.own(asked())) == MAX_RUNS


def test_the_words() -> None:
    wait = JobWait(
        "2026-11-24T10:00:00.000Z",
        (Need("cpu", "2", "1"),),
        28,
        Estimate(483, 722, 1190, 9),
        Estimate(61, 61, 62, 1),
    )
    assert waits.why(wait) == "Needs 2 CPUs, 1 is free; 28 jobs are before it."
    assert waits.start(wait) == "in about 10 min (8 min to 20 min)"
    assert waits.run(wait) == "about 1 min"
    assert waits.basis(wait.run) == "estimated from 1 earlier run"
    memory = replace(wait, needs=(Need("memory", str(8 << 30), "0"),), before=1)
    assert waits.why(memory) == "Needs 8 GiB of memory, none is free; 1 job is before it."
    assert waits.why(replace(wait, needs=(), before=0)) == ""
    assert JobWait.from_json(json.loads(json.dumps(wait.to_json()))) == wait
