"""Each command and what it is compared with, in turns: what disturbs one disturbs the other."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from .workspace import COMMAND, PAPERMILL, Workspace

CELLS = ("import math\nprint(math.pi)", "total = sum(range(1000))", "print(total)")


@dataclass
class Comparison:
    """Runs of one command; `rival` is what its median is divided by, `target` the most allowed."""

    name: str
    run: Callable[[], float]
    rival: Comparison | None = None
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


def compare(workspace: Workspace, rounds: int) -> list[Comparison]:
    """Run all commands in turns, `rounds` times each, after one turn that does not count."""
    workspace.notebook("three.ipynb", *CELLS)
    floor = Comparison(
        "python -c pass", lambda: workspace.time_command(sys.executable, "-c", "pass")
    )
    papermill_help = Comparison(
        "papermill --help", lambda: workspace.time_command(PAPERMILL, "--help")
    )
    papermill = Comparison(
        "papermill three.ipynb out.ipynb",
        lambda: workspace.time_command(PAPERMILL, "three.ipynb", "out.ipynb"),
    )

    def submit(*more: str) -> float:
        workspace.use_new_exchange()
        took = workspace.time_command(COMMAND, "submit", "three.ipynb", *more)
        workspace.wait_until_idle()
        return took

    comparisons = [
        floor,
        papermill_help,
        Comparison("jupyter-to-job --help", lambda: workspace.time_command(COMMAND, "--help"),
                papermill_help, 0.3),
        Comparison("jupyter-to-job submit, nothing running", submit, papermill_help, 0.8),
        papermill,
        Comparison("jupyter-to-job submit --wait, delivered", lambda: submit("--wait"),
                papermill, 1.3),
    ]  # fmt: skip
    for number in range(rounds + 1):
        for comparison in comparisons:
            seconds = comparison.run()
            if number:
                comparison.seconds.append(seconds)
    return comparisons
