"""Whether one thing takes longer than another, told from pairs that were measured in turns."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import ClassVar

TOLERATED = 0.03
"""The share of the whole up to which a difference is too small to matter, however sure it is."""


@dataclass(frozen=True)
class Difference:
    """Milliseconds: both medians, the median of the pairs' differences, and where that may lie."""

    without: float
    with_it: float
    added: float
    least: float
    most: float

    HEAD: ClassVar[str] = (
        f"{'ms, medians':46}{'without':>9}{'with':>9}{'added':>9}   95 % of it lies in"
    )

    @classmethod
    def of(cls, without: list[float], with_it: list[float]) -> Difference:
        """Compare pair by pair; the interval is the sign test's, which supposes nothing."""
        pairs = sorted(b - a for a, b in zip(without, with_it, strict=True))
        out = _left_out(len(pairs))
        return cls(
            statistics.median(without),
            statistics.median(with_it),
            statistics.median(pairs),
            pairs[out],
            pairs[-1 - out],
        )

    @property
    def is_measurable(self) -> bool:
        """Whether it is surely there, and more than what is tolerated."""
        return self.least > 0 and self.added > TOLERATED * self.without

    def __str__(self) -> str:
        return (
            f"{self.without:9.0f}{self.with_it:9.0f}{self.added:+9.0f}"
            f"   {self.least:+.0f} to {self.most:+.0f}"
        )


def _left_out(count: int) -> int:
    """How many pairs at each end the interval leaves out: at most 2.5 % of chance there."""
    chance, out = 0.0, -1
    while chance <= 0.025 and out + 1 < count:
        out += 1
        chance += math.comb(count, out) / 2**count
    return max(out - 1, 0) if chance > 0.025 else out
