"""Measures the command line's ratios to papermill, a flood of submissions, and `logs --follow`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from ..machine import say
from .flood import flood
from .follow import latencies
from .place import Place
from .sidebyside import Contest, side_by_side


def main() -> int:
    """Measure, print, and return 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="benchmarks.cli", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="runs of each command")
    parser.add_argument("--jobs", type=int, default=50, help="submissions at once; 0: none")
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    options = parser.parse_args()
    say()
    missed: list[str] = []
    figures: dict[str, object] = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        place = Place(Path(folder))
        contests = side_by_side(place, options.rounds)
        figures["seconds"] = {c.name: c.figures() for c in contests}
        missed += _show(contests)
        waits = latencies(place)
        figures["follow"] = {"median": waits[len(waits) // 2], "most": waits[-1]}
        print(f"\nlogs --follow: text after {waits[len(waits) // 2] * 1e3:.0f} ms (median of "
              f"{len(waits)} lines), {waits[-1] * 1e3:.0f} ms at most")  # fmt: skip
        if options.jobs:
            seen = flood(place, options.jobs)
            figures["flood"] = seen.__dict__
            print(f"\n{seen}")
            missed += seen.faults
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    print("\nmissed: " + "; ".join(missed) if missed else "\nall targets are met")
    return 1 if missed else 0


def _show(contests: list[Contest]) -> list[str]:
    """Print the table; return which targets were missed."""
    print(f"\n{'':44}{'median':>9}{'least':>9}{'most':>9}{'ratio':>8}{'target':>8}")
    missed = []
    for contest in contests:
        low, middle, high = contest.spread
        line = f"{contest.name:44}{middle:8.3f}s{low:8.3f}s{high:8.3f}s"
        if contest.ratio is not None:
            line += f"{contest.ratio:8.2f}{contest.target:>8}"
            if contest.target is not None and contest.ratio > contest.target:
                missed.append(f"{contest.name}: {contest.ratio:.2f} > {contest.target}")
        print(line)
    return missed


if __name__ == "__main__":
    sys.exit(main())
