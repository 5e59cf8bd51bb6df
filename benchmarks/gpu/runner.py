"""The runner alone, with a job directory: unlike the queue it lets several use the GPU."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from job_runner.protocol import layout
from job_runner.protocol.documents import write_document

from ..runner.measure import Run, last_log_line, measure, notebook
from ..runner.peers import RUNNER

_LIMIT = 120.0


@dataclass(frozen=True)
class Ended:
    """A run that has ended: what it took, its outcome, and its result's path."""

    run: Run
    outcome: dict[str, Any]
    result: Path


def run_cells(
    folder: Path, cells: Sequence[str], environment: dict[str, str], prefix: Sequence[str] = ()
) -> Ended:
    """Run a notebook of these cells in a new folder; `prefix` goes before the runner's command."""
    job, attempt = folder / "job", folder / "job" / "attempt-1"
    job.mkdir(parents=True)
    (job / layout.SNAPSHOT).write_text(notebook(cells))
    request = {"name": "job", "notebook": "job.ipynb", "cwd": str(folder), "isolated": False}
    write_document(job / layout.REQUEST, {**request, "parameters": {}, "env": {}})
    took = measure([*prefix, *RUNNER, "run", str(job)], folder, environment, _LIMIT)
    assert (attempt / layout.OUTCOME).exists(), last_log_line(folder)
    outcome = json.loads((attempt / layout.OUTCOME).read_text())
    return Ended(took, outcome, attempt / layout.RESULT)
