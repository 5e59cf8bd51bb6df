"""Each command and what it is compared with, in turns: what disturbs one disturbs the other."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from .place import COMMAND, PAPERMILL, Place

CELLS = ("import math\nprint(math.pi)", "total = sum(range(1000))", "print(total)")


@dataclass
class Contest:
    """Runs of one command; `rival` is what its median is divided by, `target` the most allowed."""

    name: str
    run: Callable[[], float]
    rival: Contest | None = None
    target: float | None = None
    seconds: list[float] = field(default_factory=list)

    @property
    def spread(self) -> tuple[float, float, float]:
        return min(self.seconds), statistics.median(self.seconds), max(self.seconds)

    @property
    def ratio(self) -> float | None:
        return None if self.rival is None else self.spread[1] / self.rival.spread[1]

    def figures(self) -> dict[str, object]:
        return {"seconds": self.seconds, "ratio": self.ratio, "target": self.target}


def side_by_side(place: Place, rounds: int) -> list[Contest]:
    """Run all commands in turns, `rounds` times each, after one turn that does not count."""
    place.notebook("three.ipynb", *CELLS)
    floor = Contest("python -c pass", lambda: place.timed(sys.executable, "-c", "pass"))
    papermill_help = Contest("papermill --help", lambda: place.timed(PAPERMILL, "--help"))
    papermill = Contest(
        "papermill three.ipynb out.ipynb",
        lambda: place.timed(PAPERMILL, "three.ipynb", "out.ipynb"),
    )

    def submit(*more: str) -> float:
        place.fresh()
        took = place.timed(COMMAND, "submit", "three.ipynb", *more)
        place.settle()
        return took

    contests = [
        floor,
        papermill_help,
        Contest("jupyter-to-job --help", lambda: place.timed(COMMAND, "--help"),
                papermill_help, 0.3),
        Contest("jupyter-to-job submit, nothing running", submit, papermill_help, 0.8),
        papermill,
        Contest("jupyter-to-job submit --wait, delivered", lambda: submit("--wait"),
                papermill, 1.3),
    ]  # fmt: skip
    for number in range(rounds + 1):
        for contest in contests:
            seconds = contest.run()
            if number:
                contest.seconds.append(seconds)
    return contests
