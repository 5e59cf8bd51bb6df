"""The list of many jobs: a page of it on both sides."""

from __future__ import annotations

import time
from collections.abc import Callable

from . import targets
from .door import Door
from .ours import PAGE, Ours
from .peer import PAGE as PEER_PAGE
from .peer import Peer
from .row import MS, Report, Row

SETTLE = 3.0
"""Seconds after which our index takes a directory that changed: see `exchange.stamps.RACY`."""


def pages(ours: Ours, peer: Peer, jobs: int, looks: int, report: Report) -> None:
    """Fill both stores, and look at the list `looks` times each, in turns."""
    for side in (ours, peer):
        began = time.perf_counter()
        with side.running() as door:
            sample = side.post(door)
            side.finish(sample)
            side.drain()
        side.fill(jobs, sample)
        print(f"{side.name}: {jobs:,} jobs made in {time.perf_counter() - began:.0f} s", flush=True)
    time.sleep(SETTLE)
    mine, others, small = list[float](), list[float](), list[float]()
    with ours.running() as our_door, peer.running() as peer_door:
        first = _look(ours.page, our_door, PAGE)
        for number in range(looks + 1):
            seen = (
                _look(ours.page, our_door, PAGE),
                _look(peer.page, peer_door, min(jobs, PEER_PAGE)),
                _look(lambda door: peer.small_page(door, PAGE), peer_door, PAGE),
            )
            if number:  # the first does not count
                for took, figures in zip(seen, (mine, others, small), strict=True):
                    figures.append(took)
    report.section(f"the list, {jobs:,} jobs in both stores, {looks} looks")
    name = f"a page of {PAGE} / of {PEER_PAGE}"
    report.row(Row(name, mine, others, targets.PAGE, unit=MS))
    report.row(Row(f"  a page of {PAGE} / of {PAGE}", mine, small, unit=MS))
    report.row(Row("  our first look, without an index", [first], unit=MS))


def _look(page: Callable[[Door], int], door: Door, expected: int) -> float:
    count = page(door)
    if count != expected:
        raise RuntimeError(f"a page of {count} instead of {expected} jobs")
    return door.took
