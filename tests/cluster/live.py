"""How long what a job prints takes to its readers, through agent, gateway and a workspace here."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from jupyter_to_job.domain.job import Deleted, Submission
from jupyter_to_job.service.port import Jobs
from tests import notebooks
from tests.cluster.place import ClusterPlace
from tests.cluster.product import ROOT

PROMISED = 2.0
"""Seconds from an output to its reader: what half of them are under."""
IS_ALONE = bool(os.environ.get("JUPYTER_TO_JOB_STRICT"))
MEDIAN, LATEST = (PROMISED, 2 * PROMISED) if IS_ALONE else (2.5 * PROMISED, 5 * PROMISED)
"""Seconds that a half, and 99 of 100, may take: more where others use the machine, too."""
CELLS = 5
PRINT = """\
import time
line = "x" * 99 + "\\n"
end = time.time() + {seconds}
while time.time() < end:
    begun = time.time()
    print(f"@{{time.time():.3f}} " + line * {lines}, flush=True)
    time.sleep(max(0.0, begun + 0.1 - time.time()))
"""
"""A cell that prints at a rate, with the time."""
_TIME = re.compile(r"@(\d+\.\d+) ")


@dataclass
class Delays:
    """Seconds from an output, or from the end of a cell, until a reader had it."""

    view: list[float] = field(default_factory=list)
    log: list[float] = field(default_factory=list)
    progress: list[float] = field(default_factory=list)

    def report(self) -> str:
        """Return the figures for people."""
        return ", ".join(
            f"{name} {statistics.median(d):.2f} s, 99 % {at_99_percent(d):.2f} s ({len(d)})"
            for name, d in vars(self).items()
        )


def check_live(place: ClusterPlace, rate: int, seconds: float) -> None:
    """Check that readers of a job that prints so many bytes a second keep up, and its neighbours'.

    The job's own readers are a live view, `logs --follow` and the job's progress.
    """
    cells = [PRINT.format(seconds=seconds / CELLS, lines=rate // 1000)] * CELLS
    notebooks.write(place.workspace / "dir" / "loud.ipynb", *cells)
    few = [PRINT.format(seconds=seconds / CELLS, lines=1)] * CELLS
    notebooks.write(place.workspace / "dir" / "quiet.ipynb", *few)
    loud, quiet = Delays(), Delays()
    threads = []
    for owner, notebook, delays in (("me", "loud", loud), ("you", "quiet", quiet)):
        service = place.service_of(owner)
        job = service.submit(Submission(f"dir/{notebook}.ipynb"))[0]
        threads += [
            threading.Thread(target=watch, args=(service, job.name, delays)),
            threading.Thread(target=follow, args=(place, owner, job.name, delays)),
        ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"loud: {loud.report()}\nquiet: {quiet.report()}")  # noqa: T201 - for `pytest -s`
    for delays in (loud, quiet):
        for name, figures in vars(delays).items():
            assert len(figures) >= 3, name
            assert statistics.median(figures) < MEDIAN, (name, delays.report())
            assert at_99_percent(figures) < LATEST, (name, delays.report())


def watch(service: Jobs, name: str, delays: Delays) -> None:
    """Read a job's journal as the live view does, and its progress from the events."""
    offset = 0
    seen_at: list[float] = []
    ended_at: list[float] = []
    for change in service.changes([name]):
        if change is None or isinstance(change, Deleted):
            continue
        seen_at += [time.time()] * (change.progress.cells_done - len(seen_at))
        while offset < change.journal:
            answer = service.journal(name, offset)
            if answer.next == offset:
                break
            offset = answer.next
            for record in answer.records:
                delays.view += delays_in(text_of(record))
                if record["k"] == "cell_end":
                    ended_at.append(record["t"])
        if change.state.final:
            break
    # The end of the last cell is told with the end of the job, which takes longer.
    delays.progress += [seen - ended for seen, ended in zip(seen_at[:-1], ended_at, strict=False)]


def text_of(record: dict[str, Any]) -> str:
    """Return the text of a record of a stream."""
    output = record.get("output", {})
    return output.get("text", "") if output.get("output_type") == "stream" else ""


def delays_in(text: str) -> list[float]:
    """Return how old the text's times are now."""
    return [time.time() - float(moment) for moment in _TIME.findall(text)]


def follow(place: ClusterPlace, owner: str, name: str, delays: Delays) -> None:
    """Read what `logs --follow` prints."""
    command = [sys.executable, "-c", "from jupyter_to_job.cli.main import main; main()"]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "JUPYTER_TO_JOB_GATEWAY": place.url,
        "JUPYTER_TO_JOB_GATEWAY_TOKEN_FILE": str(place.token_of(owner)),
    }
    with subprocess.Popen(
        [*command, "logs", name, "--follow"],
        cwd=place.workspace,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            delays.log += delays_in(line)


def at_99_percent(figures: list[float]) -> float:
    """Return what 99 of 100 figures are under."""
    return sorted(figures)[int(len(figures) * 0.99)] if len(figures) > 1 else figures[0]
