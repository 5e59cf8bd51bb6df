"""A row of the table: one figure on both sides, its ratio, and the target that it is held to."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

_HEAD = f"{'':37}{'ours':>9} {'least-most':>16}{'peer':>9} {'least-most':>16}{'ratio':>8}  target"


@dataclass
class Row:
    """`ours` is held to `target` times `theirs`, or, where nothing is to be divided, to `limit`.

    `unit` is by what seconds or bytes are divided, and its name.
    """

    name: str
    ours: Sequence[float]
    theirs: Sequence[float] = ()
    target: float | None = None
    limit: float | None = None
    unit: tuple[float, str] = (1.0, "s")

    @property
    def ratio(self) -> float | None:
        """Our median by the peer's."""
        if not (self.ours and self.theirs):
            return None
        return statistics.median(self.ours) / statistics.median(self.theirs)

    @property
    def met(self) -> bool:
        """Tell whether the row's target is met; a row without one always is."""
        if self.limit is not None and max(self.ours) > self.limit:
            return False
        return self.target is None or (self.ratio is not None and self.ratio <= self.target)

    def __str__(self) -> str:
        line = f"{self.name:37}{self._span(self.ours)}{self._span(self.theirs)}"
        line += f"{self.ratio:8.3f}" if self.ratio is not None else " " * 8
        held = [f"<= {self.target}"] if self.target is not None else []
        held += [f"most <= {self.limit / self.unit[0]:g} {self.unit[1]}"] if self.limit else []
        return f"{line}  {', '.join(held)}{' ' + self.verdict if held else ''}".rstrip()

    @property
    def verdict(self) -> str:
        """Say it in a word."""
        return "met" if self.met else "MISSED"

    def to_json(self) -> dict[str, Any]:
        """Return all figures."""
        return {
            "ours": list(self.ours),
            "peer": list(self.theirs),
            "ratio": self.ratio,
            "target": self.target,
            "limit": self.limit,
            "met": self.met,
        }

    def _span(self, values: Sequence[float]) -> str:
        if not values:
            return " " * 26
        scale, name = self.unit
        low, middle, high = (f(values) / scale for f in (min, statistics.median, max))
        form = "{:.1f}" if scale != 1 or middle >= 10 else "{:.2f}"
        digits = [form.format(value) for value in (low, middle, high)]
        return f"{digits[1]:>6} {name:2} {digits[0] + '-' + digits[2]:>16}"


MS = (1e-3, "ms")
GB = (1e9, "GB")


@dataclass
class Report:
    """Prints rows, and remembers what was missed or wrong."""

    missed: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    def section(self, title: str) -> None:
        """Begin a group of rows."""
        print(f"\n{title}\n{_HEAD}", flush=True)

    def add(self, row: Row) -> None:
        """Print a row."""
        print(row, flush=True)
        self.figures[row.name] = row.to_json()
        if not row.met:
            self.missed.append(str(row.name))

    def add_check(self, what: str, faults: Sequence[str]) -> None:
        """Say that all of ours came out right, or what was wrong."""
        print(f"{what}: {faults[0] + f' ({len(faults)})' if faults else 'right'}", flush=True)
        if faults:
            self.missed.append(f"{what}: {faults[0]}")

    def print_summary(self) -> int:
        """Print the sum; return the exit code."""
        print("\nmissed: " + "; ".join(self.missed) if self.missed else "\nall targets are met")
        return 1 if self.missed else 0
