"""Measures our runner beside papermill, `jupyter execute` and nbconvert, and checks what came out.

Each workload is run by all in turns. Names: %(names)s.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..machine import say
from .contest import compete, once
from .disasters import DISASTERS, suffer
from .killed import NAME as KILLED
from .killed import kill_some
from .measure import Place
from .peers import PEERS, Peer, base
from .report import Report
from .workloads import WORKLOADS

NAMES = (*WORKLOADS, *DISASTERS, KILLED)
_REPEATS = {"quick": (3, 1), "full": (20, 3)}
"""How often ours, and the others, go through a disaster."""
_KILLS = {"quick": (3, 3), "full": (12, 12)}


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and return 1 if a target is missed."""
    options = _parser().parse_args(arguments)
    options.only = _names(options)
    if options.one_core:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    peers = [PEERS[name] for name in options.peers]
    if options.base is not None:
        peers.insert(1, base(options.base))
    say()
    report = Report(one_core=options.one_core)
    with tempfile.TemporaryDirectory(prefix="bench-runner-") as root:
        place = Place(Path(root))
        for peer in peers:  # one turn that does not count: bytecode, profiles, font caches
            once(place, WORKLOADS["trivial"], peer)
        figures = _workloads(options, place, peers, report)
        _disasters(options, place, peers, report)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return report.close()


def _workloads(
    options: argparse.Namespace, place: Place, peers: Sequence[Peer], report: Report
) -> dict[str, Any]:
    figures = {}
    for name in options.only:
        workload = WORKLOADS.get(name)
        if workload is None:
            continue
        rounds, peer_rounds = workload.rounds, workload.peer_rounds
        if options.quick:
            rounds, peer_rounds = min(rounds, 3), 3 if name == "trivial" else 1
        if options.rounds:
            rounds = peer_rounds = options.rounds
        contest = compete(place, workload, peers, rounds, peer_rounds)
        report.contest(contest)
        sys.stdout.flush()
        figures[name] = contest.to_json()
    return figures


def _disasters(
    options: argparse.Namespace, place: Place, peers: Sequence[Peer], report: Report
) -> None:
    size = "quick" if options.quick else "full"
    chance = random.Random(options.seed)
    for name, peer in itertools.product(options.only, peers):
        if name not in WORKLOADS:
            repeats = (_KILLS if name == KILLED else _REPEATS)[size][0 if peer.is_ours else 1]
            repeats = options.rounds or repeats
            if name == KILLED:
                report.remains(name, peer.name, kill_some(place, peer, repeats, chance))
            else:
                seen = [suffer(place, DISASTERS[name], peer) for _ in range(repeats)]
                report.disaster(name, peer.name, seen)
            sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="benchmarks.runner", description=__doc__ and __doc__ % {"names": ", ".join(NAMES)}
    )
    parser.add_argument("--quick", action="store_true", help="five to ten minutes: fewer rounds")
    parser.add_argument("--only", nargs="+", choices=NAMES, metavar="NAME", help="these alone")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS), metavar="WHO",
                        help=f"of {', '.join(PEERS)} (all)")  # fmt: skip
    parser.add_argument("--rounds", type=int, help="runs of everything by everybody")
    parser.add_argument("--base", type=Path, help="another checkout, whose runner runs beside ours")
    parser.add_argument("--one-core", action="store_true", help="on one core; the trivial notebook")
    parser.add_argument("--seed", type=int, default=1, help="of the random moments")
    parser.add_argument("--json", type=Path, help="write the single runs here, too")
    return parser


def _names(options: argparse.Namespace) -> tuple[str, ...]:
    """Return what to run, in the order of the table."""
    if options.only:
        return tuple(name for name in NAMES if name in options.only)
    if options.one_core:
        return ("trivial",)
    if options.quick:
        return tuple(name for name in NAMES if name not in WORKLOADS or WORKLOADS[name].quick)
    return NAMES


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
