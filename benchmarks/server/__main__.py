"""Measures the server extension beside jupyter-scheduler: one job, the list, many jobs at once.

And two that need no jupyter-scheduler: for how long our event loop answers nobody (`loop`), and
what a long queue costs (`queue`).
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..machine import print_machine
from .event_loop import QueueServer, Sizes, measure_event_loop
from .flood import measure_floods
from .job_list import measure_list
from .kernels import ROOT
from .long_queue import measure_queue
from .ours import OurServer
from .peer import PeerServer, scheduler_version
from .report import Report
from .server import PROGRAMS
from .single_jobs import measure_single_jobs

PARTS = ("single", "list", "flood", "loop", "queue")
_SIZES = {
    "quick": {"rounds": 2, "jobs": 3, "flood": 10, "floods": (1, 1), "notebook": 40, "inputs": 300},
    "full": {
        "rounds": 5,
        "jobs": 5,
        "flood": 50,
        "floods": (3, 1),
        "notebook": 200,
        "inputs": 1000,
    },
}
"""What is not given: the peer takes nine minutes for one flood of fifty."""


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and return 1 if a target is missed."""
    options = _parser().parse_args(arguments)
    for name, size in _SIZES["quick" if options.quick else "full"].items():
        if getattr(options, name) is None:
            setattr(options, name, size)
    versions = []
    if not {"loop", "queue"}.issuperset(options.only):
        try:
            versions.append(scheduler_version(options.peer))
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 2
    print_machine()
    for version in versions:
        print(f"peer: jupyter-scheduler {version}; both in {options.program}")
    report = Report()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # no server is left running
    with tempfile.TemporaryDirectory(prefix="bench-server-") as root:
        for part in PARTS:
            if part in options.only:
                _measure(part, Path(root, part), options, report)
    if options.json:
        options.json.write_text(json.dumps(report.figures, indent=1) + "\n")
    return report.print_summary()


def _measure(part: str, folder: Path, options: argparse.Namespace, report: Report) -> None:
    """Run one part in a folder of its own."""
    program = options.program
    if part == "loop":
        sizes = Sizes(
            options.notebook * 1_000_000, options.inputs * 1_000_000, options.listed, options.rounds
        )
        measure_event_loop(QueueServer(folder, Path(sys.executable), program), sizes, report)
        return
    if part == "queue":
        measure_queue(QueueServer(folder, Path(sys.executable), program), options.looks, report)
        return
    ours = OurServer(folder / "ours", Path(sys.executable), program)
    peer = PeerServer(folder / "peer", options.peer, program)
    if part == "single":
        measure_single_jobs(ours, peer, options.rounds, options.jobs, report)
    elif part == "list":
        measure_list(ours, peer, options.listed, options.looks, report)
    else:
        measure_floods(ours, peer, options.flood, options.floods, report)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.server", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few minutes: 10 at once, not 50")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="these parts alone")
    parser.add_argument("--program", choices=PROGRAMS, default=PROGRAMS[0],
                        help="what both are an extension of (JupyterLab)")  # fmt: skip
    parser.add_argument("--rounds", type=int, help="turns of `single`, tries of `loop`")
    parser.add_argument("--jobs", type=int, help="jobs of each server in a turn of `single`")
    parser.add_argument("--listed", type=int, default=10_000, help="jobs in `list` and `loop`")
    parser.add_argument("--notebook", type=int, help="megabytes of the notebook in `loop`")
    parser.add_argument("--inputs", type=int, help="megabytes of inputs in `loop`")
    parser.add_argument(
        "--looks", type=int, default=30, help="requests of each server in `list`, tries of `queue`"
    )
    parser.add_argument("--flood", type=int, help="jobs at once in `flood`")
    parser.add_argument("--floods", type=int, nargs=2, metavar=("OURS", "PEER"),
                        help="how often each is flooded")  # fmt: skip
    parser.add_argument("--peer", type=Path, default=ROOT / ".venv-peer/bin/python",
                        metavar="PYTHON", help="the one that has jupyter-scheduler")  # fmt: skip
    parser.add_argument("--json", type=Path, help="write the single figures here, too")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
