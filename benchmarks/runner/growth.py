"""Our runner alone, on notebooks that grow: does a cell, or a megabyte, cost the same at any size?

`python -m benchmarks.runner.growth`. Needs three times the largest output of disk, for a while.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..machine import print_machine
from . import targets
from .comparison import run_once
from .measure import Run, RunFolders
from .peers import OURS
from .workloads import Workload, blocks, tiny

_CELLS = (100, 300, 1000, 3000)
_VALUE_EVERY = 3
_MEGABYTES = (10, 30, 100, 300, 1000)
_CELL_MEGABYTES = 10
_ONE_CELL = 100
"""Megabytes of the cell that holds all the output there is."""


@dataclass(frozen=True)
class Point:
    """One size, run some times: `units` are cells or megabytes, `largest` a cell's output."""

    units: int
    largest: int
    runs: Sequence[Run]
    wrong: str

    @property
    def wall(self) -> float:
        return statistics.median(run.wall for run in self.runs)

    @property
    def cpu(self) -> float:
        return statistics.median(run.cpu for run in self.runs)

    @property
    def memory(self) -> int:
        return max(run.memory for run in self.runs)

    @property
    def bound(self) -> int:
        return targets.MEMORY + targets.MEMORY_CELLS * self.largest

    def each(self, empty: Point) -> tuple[float, float]:
        """Return one unit's wall and processor seconds, without what a run of nothing takes."""
        return (self.wall - empty.wall) / self.units, (self.cpu - empty.cpu) / self.units

    def row(self, empty: Point) -> str:
        wall, cpu = self.each(empty)
        return (
            f"{self.units:22,}{self.wall:8.2f}s{wall * 1e3:10.2f}ms{cpu * 1e3:10.2f}ms"
            f"{self.memory / 1e6:7.0f}{self.bound / 1e6:7.0f}  {self.wrong or 'right'}"
        )


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and return 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="benchmarks.runner.growth", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each size")
    parser.add_argument("--cells", type=int, nargs="*", default=_CELLS, metavar="N")
    parser.add_argument("--megabytes", type=int, nargs="*", default=_MEGABYTES, metavar="N")
    options = parser.parse_args(arguments)
    print_machine()
    missed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="bench-growth-") as root:
        folders = RunFolders(Path(root))
        run_once(folders, tiny(1), OURS)  # does not count: bytecode, profiles
        empty = _point(folders, tiny(1), 0, 0, options.rounds)
        small = [_cells(folders, count, options.rounds) for count in options.cells]
        missed += _show("cells", empty, small)
        large = [_megabytes(folders, size, _CELL_MEGABYTES, options.rounds)
                 for size in options.megabytes]  # fmt: skip
        missed += _show("MB in cells of 10 MB", empty, large)
        one = _megabytes(folders, _ONE_CELL, _ONE_CELL, options.rounds)
        missed += _show("MB in one cell", empty, [one])
    print("\nmissed:\n  " + "\n  ".join(missed) if missed else "\nall targets are met")
    return 1 if missed else 0


def _cells(folders: RunFolders, count: int, rounds: int) -> Point:
    return _point(folders, tiny(count, value_every=_VALUE_EVERY), count, 0, rounds)


def _megabytes(folders: RunFolders, size: int, cell: int, rounds: int) -> Point:
    workload = blocks(-(-size // cell), min(size, cell))
    return _point(folders, workload, size, cell * 1_000_000, rounds)


def _point(folders: RunFolders, workload: Workload, units: int, largest: int, rounds: int) -> Point:
    done = [run_once(folders, workload, OURS) for _ in range(rounds)]
    wrong = next((wrong for _, wrong in done if wrong), "")
    return Point(units, largest, [run for run, _ in done], wrong)


def _show(what: str, empty: Point, points: Sequence[Point]) -> list[str]:
    """Print a table; return which targets were missed."""
    print(
        f"\n{what:>22}{'wall':>9}{'each':>12}{'cpu each':>12}{'MB':>7}{'bound':>7}  what came out"
    )
    missed = []
    for point in points:
        print(point.row(empty))
        if point.wrong:
            missed.append(f"{point.units} {what}: {point.wrong}")
        if point.memory > point.bound:
            missed.append(f"{point.units} {what}: {point.memory / 1e6:.0f} MB of memory")
    if len(points) > 1:
        growth, cpu = (
            _growth(costs) for costs in zip(*(p.each(empty) for p in points), strict=True)
        )
        met = 0 < growth <= targets.SUPERLINEAR
        print(
            f"{'met' if met else 'NOT MET':>22}    each at the largest size: {growth:.2f} "
            f"(cpu {cpu:.2f}) of the median of the smaller ones, at most {targets.SUPERLINEAR}"
        )
        if not met:
            missed.append(f"{what}: not linear, {growth:.2f}")
    sys.stdout.flush()
    return missed


def _growth(costs: Sequence[float]) -> float:
    """Return what the last one is of the median of the others; 0 where noise hides them."""
    usual = statistics.median(costs[:-1])
    return costs[-1] / usual if usual > 0 else 0.0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
