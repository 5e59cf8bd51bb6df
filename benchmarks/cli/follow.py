"""How long text takes from `print` in a cell to whoever follows the job's log."""

from __future__ import annotations

import subprocess
import time

from .place import COMMAND, Place

LINES = 40
CELL = f"""\
import time
for _ in range({LINES}):
    print(repr(time.time()), flush=True)
    time.sleep(0.15)
"""


def latencies(place: Place) -> list[float]:
    """Return the seconds from print to arrival, in ascending order, of a job that prints slowly."""
    place.fresh()
    place.notebook("prints.ipynb", CELL)
    name = place.run(COMMAND, "submit", "prints.ipynb").stdout.strip()
    with subprocess.Popen(
        [COMMAND, "logs", name, "--follow"],
        cwd=place.workspace,
        env=place.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as following:
        assert following.stdout is not None
        seen = [time.time() - float(line) for line in following.stdout]
    place.settle()
    assert len(seen) == LINES, f"{len(seen)} of {LINES} lines came"
    return sorted(seen)
