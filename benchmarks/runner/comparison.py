"""One workload by all who are measured, in turns: what disturbs one disturbs the others."""

from __future__ import annotations

import importlib.util
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .measure import SOURCE, Run, RunFolders, last_log_line, measure
from .peers import RESULT, Peer
from .result_checks import find_fault
from .workloads import Workload

_RUN_TIMEOUT = 1800.0
"""Seconds after which a run counts as hanging."""


@dataclass
class PeerRuns:
    """One peer's runs of a workload, and what was wrong with each."""

    peer: Peer
    runs: list[Run] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def wall(self) -> float:
        return statistics.median(run.wall for run in self.runs)

    @property
    def wrong(self) -> str:
        """The first thing that was wrong; empty if every run was right."""
        faults = [found for found in self.faults if found]
        return f"{faults[0]} ({len(faults)} of {len(self.runs)} runs)" if faults else ""

    def median(self, figure: str) -> float:
        return float(statistics.median(getattr(run, figure) for run in self.runs))


@dataclass
class Comparison:
    """All results of one workload. `missing` names modules without which it could not be run."""

    workload: Workload
    results: list[PeerRuns]
    missing: tuple[str, ...] = ()

    def find(self, name: str) -> PeerRuns | None:
        return next(
            (result for result in self.results if result.peer.name == name and result.runs), None
        )

    def ratio(
        self, result: PeerRuns, rival: str = "papermill"
    ) -> tuple[float, float, float] | None:
        """Return a result's median by the rival's, with the least and the most of single turns."""
        other = self.find(rival)
        if other is None or other is result:
            return None
        turns = [
            run.wall / other.runs[min(turn, len(other.runs) - 1)].wall
            for turn, run in enumerate(result.runs)
        ]
        return result.wall / other.wall, min(turns), max(turns)

    def to_json(self) -> dict[str, Any]:
        return {
            result.peer.name: {
                "runs": [run.to_json() for run in result.runs],
                "faults": result.faults,
            }
            for result in self.results
        }


def compare(
    folders: RunFolders, workload: Workload, peers: Sequence[Peer], rounds: int, peer_rounds: int
) -> Comparison:
    """Run a workload `rounds` times by us and `peer_rounds` times by each of the others."""
    results = [PeerRuns(peer) for peer in peers]
    missing = tuple(name for name in workload.needs if importlib.util.find_spec(name) is None)
    if missing:
        return Comparison(workload, results, missing)
    for turn in range(max(rounds, peer_rounds)):
        first = turn % len(results)
        for result in [*results[first:], *results[:first]]:
            if turn < (rounds if result.peer.is_ours else peer_rounds):
                run, wrong = run_once(folders, workload, result.peer)
                result.runs.append(run)
                result.faults.append(wrong)
    return Comparison(workload, results)


def run_once(folders: RunFolders, workload: Workload, peer: Peer) -> tuple[Run, str]:
    """Run a workload by one peer; return the figures, and what is wrong with what came out."""
    folder = folders.fresh(workload.cells)
    try:
        environment = folders.environment(peer.environment)
        run = measure(peer.command(SOURCE), folder, environment, _RUN_TIMEOUT)
        wrong = find_fault(folder / RESULT, workload.check)
        if run.exit_code < 0 or (run.exit_code != 0) != workload.raises:
            wrong = f"exit {run.exit_code} ({last_log_line(folder)}), {wrong}".rstrip(", ")
        return run, wrong
    finally:
        shutil.rmtree(folder)
