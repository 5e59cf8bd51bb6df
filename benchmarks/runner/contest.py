"""One workload by all who are measured, in turns: what disturbs one disturbs the others."""

from __future__ import annotations

import importlib.util
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .checks import verdict
from .measure import SOURCE, Place, Run, last_words, measure
from .peers import RESULT, Peer
from .workloads import Workload

_LIMIT = 1800.0
"""Seconds after which a run counts as hanging."""


@dataclass
class Lane:
    """One peer's runs of a workload, and what was wrong with each."""

    peer: Peer
    runs: list[Run] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)

    @property
    def wall(self) -> float:
        return statistics.median(run.wall for run in self.runs)

    @property
    def wrong(self) -> str:
        """The first thing that was wrong; empty if every run was right."""
        faults = [found for found in self.verdicts if found]
        return f"{faults[0]} ({len(faults)} of {len(self.runs)} runs)" if faults else ""

    def median(self, figure: str) -> float:
        return float(statistics.median(getattr(run, figure) for run in self.runs))


@dataclass
class Contest:
    """All lanes of one workload. `missing` names modules without which it could not be run."""

    workload: Workload
    lanes: list[Lane]
    missing: tuple[str, ...] = ()

    def lane(self, name: str) -> Lane | None:
        return next((lane for lane in self.lanes if lane.peer.name == name and lane.runs), None)

    def ratio(self, lane: Lane, rival: str = "papermill") -> tuple[float, float, float] | None:
        """Return a lane's median by the rival's, with the least and the most of single turns."""
        other = self.lane(rival)
        if other is None or other is lane:
            return None
        turns = [
            run.wall / other.runs[min(turn, len(other.runs) - 1)].wall
            for turn, run in enumerate(lane.runs)
        ]
        return lane.wall / other.wall, min(turns), max(turns)

    def to_json(self) -> dict[str, Any]:
        return {
            lane.peer.name: {
                "runs": [run.to_json() for run in lane.runs],
                "verdicts": lane.verdicts,
            }
            for lane in self.lanes
        }


def compete(
    place: Place, workload: Workload, peers: Sequence[Peer], rounds: int, peer_rounds: int
) -> Contest:
    """Run a workload `rounds` times by us and `peer_rounds` times by each of the others."""
    lanes = [Lane(peer) for peer in peers]
    missing = tuple(name for name in workload.needs if importlib.util.find_spec(name) is None)
    if missing:
        return Contest(workload, lanes, missing)
    for turn in range(max(rounds, peer_rounds)):
        first = turn % len(lanes)
        for lane in [*lanes[first:], *lanes[:first]]:
            if turn < (rounds if lane.peer.is_ours else peer_rounds):
                run, wrong = once(place, workload, lane.peer)
                lane.runs.append(run)
                lane.verdicts.append(wrong)
    return Contest(workload, lanes)


def once(place: Place, workload: Workload, peer: Peer) -> tuple[Run, str]:
    """Run a workload by one peer; return the figures, and what is wrong with what came out."""
    folder = place.fresh(workload.cells)
    try:
        environment = place.environment(peer.environment)
        run = measure(peer.command(SOURCE), folder, environment, _LIMIT)
        wrong = verdict(folder / RESULT, workload.check)
        if run.exit_code < 0 or (run.exit_code != 0) != workload.raises:
            wrong = f"exit {run.exit_code} ({last_words(folder)}), {wrong}".rstrip(", ")
        return run, wrong
    finally:
        shutil.rmtree(folder)
