"""One job at a time on both sides: how long the answer takes, and how long the result."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from . import targets
from .door import Door
from .ours import Ours
from .peer import Peer
from .row import MS, Report, Row
from .side import Side


@dataclass
class Lane:
    """What was seen of one side, in seconds: `first` are those after a pause."""

    answered: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    downloaded: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def single(ours: Ours, peer: Peer, rounds: int, jobs: int, report: Report) -> None:
    """Submit `jobs` jobs to each side in each of `rounds` turns, and print what that took."""
    mine, others = Lane(), Lane()
    with ours.running() as our_door, peer.running() as peer_door:
        for number in range(rounds + 1):
            # The first turn does not count: bytecode, first imports, profiles.
            count = jobs if number else 1
            one, two = (mine, others) if number else (Lane(), Lane())
            turns = [(ours, our_door, one), (peer, peer_door, two)]
            for side, door, lane in turns if number % 2 else turns[::-1]:
                _turn(side, door, lane, count)
    report.section(f"one job at a time, {rounds} turns of {jobs} jobs each")
    report.row(Row("POST, answered", mine.answered, others.answered, targets.POST, unit=MS))
    report.row(Row("  the first in a turn", mine.first, others.first, unit=MS))
    report.row(Row("POST to delivered / COMPLETED", mine.ended, others.ended, targets.DELIVERED))
    have = [a + b for a, b in zip(others.ended, others.downloaded, strict=True)]
    report.row(Row("  to the file in the workspace", mine.ended, have))
    report.right("our results", mine.faults)
    report.right("the peer's results", others.faults)


def _turn(side: Side, door: Door, lane: Lane, jobs: int) -> None:
    """Submit, wait for the result, and for the last process of it to leave; so many times."""
    for number in range(jobs):
        began = time.perf_counter()
        job = side.post(door)
        lane.answered.append(door.took)
        side.finish(job)
        lane.ended.append(time.perf_counter() - began)
        if number == 0:
            lane.first.append(lane.answered[-1])
        if isinstance(side, Peer):
            lane.downloaded.append(side.download(door, job))
        side.drain()
        lane.faults += filter(None, [side.fault(job)])
