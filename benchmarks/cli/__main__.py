"""Measures the command line's ratios to papermill, a flood of submissions, and `logs --follow`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from ..machine import print_machine
from .comparison import Comparison, compare
from .flood import flood
from .follow import latencies
from .workspace import Workspace


def main() -> int:
    """Measure, print, and return 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="benchmarks.cli", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="runs of each command")
    parser.add_argument("--jobs", type=int, default=50, help="submissions at once; 0: none")
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    options = parser.parse_args()
    print_machine()
    missed: list[str] = []
    figures: dict[str, object] = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        workspace = Workspace(Path(folder))
        comparisons = compare(workspace, options.rounds)
        figures["seconds"] = {c.name: c.figures() for c in comparisons}
        missed += _show(comparisons)
        waits = latencies(workspace)
        figures["follow"] = {"median": waits[len(waits) // 2], "most": waits[-1]}
        print(f"\nlogs --follow: text after {waits[len(waits) // 2] * 1e3:.0f} ms (median of "
              f"{len(waits)} lines), {waits[-1] * 1e3:.0f} ms at most")  # fmt: skip
        if options.jobs:
            result = flood(workspace, options.jobs)
            figures["flood"] = result.__dict__
            print(f"\n{result}")
            missed += result.faults
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    print("\nmissed: " + "; ".join(missed) if missed else "\nall targets are met")
    return 1 if missed else 0


def _show(comparisons: list[Comparison]) -> list[str]:
    """Print the table; return which targets were missed."""
    print(f"\n{'':44}{'median':>9}{'least':>9}{'most':>9}{'ratio':>8}{'target':>8}")
    missed = []
    for comparison in comparisons:
        low, middle, high = comparison.spread
        line = f"{comparison.name:44}{middle:8.3f}s{low:8.3f}s{high:8.3f}s"
        if comparison.ratio is not None:
            line += f"{comparison.ratio:8.2f}{comparison.target:>8}"
            if comparison.target is not None and comparison.ratio > comparison.target:
                missed.append(f"{comparison.name}: {comparison.ratio:.2f} > {comparison.target}")
        print(line)
    return missed


if __name__ == "__main__":
    sys.exit(main())
