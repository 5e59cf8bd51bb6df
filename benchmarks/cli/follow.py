"""How long text takes from `print` in a cell to whoever follows the job's log."""

from __future__ import annotations

import subprocess
import time

from .workspace import COMMAND, Workspace

LINES = 40
CELL = f"""\
import time
for _ in range({LINES}):
    print(repr(time.time()), flush=True)
    time.sleep(0.15)
"""


def latencies(workspace: Workspace) -> list[float]:
    """Return the seconds from print to arrival, in ascending order, of a job that prints slowly."""
    workspace.use_new_exchange()
    workspace.notebook("prints.ipynb", CELL)
    name = workspace.run(COMMAND, "submit", "prints.ipynb").stdout.strip()
    with subprocess.Popen(
        [COMMAND, "logs", name, "--follow"],
        cwd=workspace.folder,
        env=workspace.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as following:
        assert following.stdout is not None
        delays = [time.time() - float(line) for line in following.stdout]
    workspace.wait_until_idle()
    assert len(delays) == LINES, f"{len(delays)} of {LINES} lines came"
    return sorted(delays)
