"""What a waiting job waits for, and estimates of when it starts and how long it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .known_fields import known_fields

LOWER, UPPER = 0.1, 0.9
"""The shares of all cases that are below an estimate's `low` and `high`."""


@dataclass(frozen=True)
class Need:
    """A resource of which less is free than the job needs; amounts are plain decimal numbers."""

    resource: str
    amount: str
    free: str


@dataclass(frozen=True)
class Estimate:
    """Seconds, estimated from a number of earlier runs: in four of five cases `low` to `high`."""

    low: float
    likely: float
    high: float
    runs: int

    @classmethod
    def of(cls, samples: Sequence[float], runs: int) -> Estimate:
        """Return the estimate of which these are equally likely outcomes; there is at least one."""
        ordered = sorted(samples)
        low, likely, high = (
            round(ordered[min(int(share * len(ordered)), len(ordered) - 1)], 1)
            for share in (LOWER, 0.5, UPPER)
        )
        return cls(low, likely, high, runs)


@dataclass(frozen=True)
class JobWait:
    """What a waiting job waits for, as it was at `time` (RFC 3339).

    `before` are the jobs before it in its queue; None: its backend has no queue. `start` is in how
    many seconds it starts, and `run` how long it runs then; None: nothing tells.
    """

    time: str
    needs: tuple[Need, ...] = ()
    before: int | None = None
    start: Estimate | None = None
    run: Estimate | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON types."""
        return {
            "time": self.time,
            "needs": [dict(vars(need)) for need in self.needs],
            "before": self.before,
            "start": None if self.start is None else dict(vars(self.start)),
            "run": None if self.run is None else dict(vars(self.run)),
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> JobWait:
        """Read it back; fields of a newer version are ignored."""
        return cls(
            time=document["time"],
            needs=tuple(Need(**known_fields(Need, need)) for need in document.get("needs") or ()),
            before=document.get("before"),
            start=_estimate(document.get("start")),
            run=_estimate(document.get("run")),
        )


def _estimate(document: dict[str, Any] | None) -> Estimate | None:
    return None if document is None else Estimate(**known_fields(Estimate, document))
