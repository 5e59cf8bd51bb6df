"""How long earlier runs took, by notebook, flavor and device: what estimates are made from."""

from __future__ import annotations

import json
import math
import random
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from job_runner.protocol import times

from ...domain.job import State
from ...domain.wait import Estimate
from ...exchange import Request
from ...exchange.index import IndexRow

MAX_ROWS = 1000
"""Ended jobs that are looked at, the newest."""
MAX_RUNS = 20
"""Runs of one kind that count, the newest."""
START_TIME = 1.0
"""Seconds that a slot is taken before a run's first cell and after its last one."""
SPREAD = 0.5
"""How far one earlier run may be from what is typical, as a share. Of four runs it is half of that.
"""
SAMPLES = 24
"""How often a forecast is made, each time with other run times."""
OVERTIME = 0.25
"""What a run that takes longer than all earlier ones still needs, as a share of its time so far."""


class _Kind(NamedTuple):
    """What runs have in common. Empty texts: all of them."""

    source: str
    flavor: str
    device: str


class _Run(NamedTuple):
    kind: _Kind
    seconds: float


class PastRuns:
    """The run times of jobs that succeeded. A row is parsed once, and an estimate made once."""

    def __init__(self) -> None:
        self._runs: dict[tuple[str, str], _Run | None] = {}
        self._seconds: dict[_Kind, list[float]] = {}
        self._estimates: dict[tuple[_Kind, int | None], Estimate] = {}
        self._rows: Sequence[IndexRow] = ()

    def update(self, rows: Sequence[IndexRow]) -> None:
        """Take the rows of ended jobs, oldest first."""
        if rows is self._rows:
            return
        self._rows = rows
        newest = [r for r in reversed(rows[-MAX_ROWS:]) if r.state == State.SUCCEEDED.value]
        keys = [(row.name, row.stamp) for row in newest]
        previous_runs = self._runs
        self._runs = {
            key: previous_runs[key] if key in previous_runs else _run_of(row)
            for key, row in zip(keys, newest, strict=True)
        }
        seconds: dict[_Kind, list[float]] = defaultdict(list)
        for run in filter(None, self._runs.values()):
            source, flavor, device = run.kind
            for kind in (run.kind, _Kind(source, "", ""), _Kind("", flavor, device)):
                if len(seconds[kind]) < MAX_RUNS:
                    seconds[kind].append(run.seconds)
        self._seconds = dict(seconds)
        self._estimates = {}

    def own(self, request: Request) -> Sequence[float]:
        """Return the seconds of earlier runs of a job's notebook with its flavor and device."""
        return self._seconds.get(_kind_of(request), ())

    def similar(self, request: Request) -> Sequence[float]:
        """Return the seconds of the runs that are nearest to a job, none if there is none.

        These are its own, or those of its notebook, or those of its flavor and device.
        """
        return (
            self.own(request)
            or self._seconds.get(_Kind(request.source, "", ""), ())
            or self._seconds.get(_Kind("", request.flavor, request.device), ())
        )

    def estimate(self, request: Request) -> Estimate | None:
        """Return how long a job runs; None if its notebook never ran with its flavor."""
        # Taken first: what is made of older runs while `update` goes on is in an older dictionary.
        estimates = self._estimates
        seconds = self.own(request)
        if not seconds:
            return None
        key = _kind_of(request), request.max_runtime
        if key not in estimates:
            samples = []
            for number in range(SAMPLES):
                draws = Draws(self, number)
                samples += [draws.draw(request) or 0.0 for _ in seconds]
            estimates[key] = Estimate.of(samples, len(seconds))
        return estimates[key]


class Draws:
    """Run times for one forecast, drawn from earlier runs.

    Few earlier runs may not be typical: all jobs with the same ones are quicker or slower together.
    The same number draws the same times, so that an estimate changes only for a reason.
    """

    def __init__(self, past: PastRuns, number: int) -> None:
        self._past = past
        self._random = random.Random(number)  # noqa: S311 - no secret
        self._factors: dict[int, tuple[float, Sequence[float]]] = {}
        self.used: dict[int, int] = {}
        """The number of earlier runs of each kind that was drawn from."""

    def draw(self, request: Request) -> float | None:
        """Return how many seconds a job runs; None if nothing tells."""
        seconds = self._past.similar(request)
        if not seconds:
            return None
        return _limited(self._random.choice(seconds) * self._factor(seconds), request)

    def slot_time(self, request: Request) -> float | None:
        """Return for how many seconds a job has its slot; None if nothing tells."""
        seconds = self.draw(request)
        return None if seconds is None else seconds + START_TIME

    def remaining(self, request: Request, elapsed: float) -> float | None:
        """Return for how many more seconds a job has its slot that has run for some time."""
        seconds = self._past.similar(request)
        if not seconds:
            return None
        factor = self._factor(seconds)
        longer = [s * factor for s in seconds if s * factor > elapsed]
        total = self._random.choice(longer) if longer else elapsed * (1 + OVERTIME)
        return max(_limited(total, request) - elapsed, 0.0) + (START_TIME if not elapsed else 0.0)

    def _factor(self, seconds: Sequence[float]) -> float:
        key = id(seconds)
        if key not in self._factors:
            spread = SPREAD / math.sqrt(len(seconds))
            # Another thread may update the runs: kept, they leave their id to no others.
            self._factors[key] = math.exp(self._random.gauss(0.0, spread)), seconds
            self.used[key] = len(seconds)
        return self._factors[key][0]


def _kind_of(request: Request) -> _Kind:
    return _Kind(request.source, request.flavor, request.device)


def _limited(seconds: float, request: Request) -> float:
    return seconds if request.max_runtime is None else min(seconds, request.max_runtime)


def _run_of(row: IndexRow) -> _Run | None:
    """Return the run of an ended job; None if its times are not known."""
    try:
        job = json.loads(row.document)
        span = times.parse(job["finished"]) - times.parse(job["started"])
        kind = _Kind(row.source, str(job["flavor"]), str(job["device"]))
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    return _Run(kind, max(span.total_seconds(), 0.0))
