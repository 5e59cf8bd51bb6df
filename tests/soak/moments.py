"""Random moments in the life of a job: a thing that has happened, and a little later."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..processes import BOUND
from .evidence import Evidence, look

PHASES = ("submitted", "claimed", "kernel", "answered", "printing", "ended", "result", "publishing")
"""What has happened: recorded; claimed by a runner; kernel spawned; kernel answers; some lines are
printed; the last record stands; a result is being written; it is being published."""


@dataclass(frozen=True)
class Moment:
    """`jitter` seconds after `phase`; for `printing` after that many of its characters."""

    phase: str
    characters: int
    jitter: float

    def __str__(self) -> str:
        return f"{self.phase}+{self.jitter:.3f}"

    def wait(self, job: Path, workspace: Path) -> bool:
        """Wait for the moment; False if the job was delivered before."""
        end = time.monotonic() + BOUND
        while not self.reached(job, workspace):
            assert time.monotonic() < end, f"{job.name} never came to {self}"
            if look(job).delivered:
                return False
            time.sleep(0.002)
        time.sleep(self.jitter)
        return True

    def reached(self, job: Path, workspace: Path) -> bool:
        """Tell whether it has come, but for the jitter."""
        if self.phase == "publishing":
            return any(workspace.rglob(".*.tmp"))
        if self.phase == "result":
            return any(job.glob("attempt-1/.*.tmp"))
        return self._happened(look(job))

    def _happened(self, seen: Evidence) -> bool:
        return {
            "submitted": True,
            "claimed": seen.claimed,
            "kernel": seen.kernel is not None,
            "answered": seen.answered,
            "printing": len(seen.printed) >= self.characters > 0,
            "ended": seen.ended is not None,
        }[self.phase]


def draw(rng: random.Random, phases: Iterable[str], characters: int) -> Moment:
    """Draw a moment after one of `phases`, of a job that prints so many characters in all."""
    phase = rng.choice(list(phases))
    longest = {"submitted": 1.5, "ended": 0.05, "result": 0.01, "publishing": 0.01}
    jitter = rng.uniform(0, longest.get(phase, 0.4))
    return Moment(phase, rng.randint(1, characters), jitter)
