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

from ..machine import print_machine
from .comparison import compare, run_once
from .failures import FAILURES, run_failure
from .measure import RunFolders
from .peers import PEERS, Peer, base
from .report import Report
from .sigkill import NAME as SIGKILL
from .sigkill import kill_runners
from .workloads import WORKLOADS

NAMES = (*WORKLOADS, *FAILURES, SIGKILL)
_REPEATS = {"quick": (3, 1), "full": (20, 3)}
"""How often ours, and the others, go through a failure."""
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
    print_machine()
    report = Report(one_core=options.one_core)
    with tempfile.TemporaryDirectory(prefix="bench-runner-") as root:
        folders = RunFolders(Path(root))
        for peer in peers:  # one turn that does not count: bytecode, profiles, font caches
            run_once(folders, WORKLOADS["trivial"], peer)
        figures = _run_workloads(options, folders, peers, report)
        _run_failures(options, folders, peers, report)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return report.print_summary()


def _run_workloads(
    options: argparse.Namespace, folders: RunFolders, peers: Sequence[Peer], report: Report
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
        comparison = compare(folders, workload, peers, rounds, peer_rounds)
        report.comparison(comparison)
        sys.stdout.flush()
        figures[name] = comparison.to_json()
    return figures


def _run_failures(
    options: argparse.Namespace, folders: RunFolders, peers: Sequence[Peer], report: Report
) -> None:
    size = "quick" if options.quick else "full"
    chance = random.Random(options.seed)
    for name, peer in itertools.product(options.only, peers):
        if name not in WORKLOADS:
            repeats = (_KILLS if name == SIGKILL else _REPEATS)[size][0 if peer.is_ours else 1]
            repeats = options.rounds or repeats
            if name == SIGKILL:
                report.killed_run(name, peer.name, kill_runners(folders, peer, repeats, chance))
            else:
                seen = [run_failure(folders, FAILURES[name], peer) for _ in range(repeats)]
                report.failure(name, peer.name, seen)
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
