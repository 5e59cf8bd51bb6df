"""A workspace and throw-away exchanges, so that no run finds anything of an earlier one."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import psutil
from nbformat.v4 import new_code_cell, new_notebook

from ..machine import caller_environment

SCRIPTS = Path(sys.executable).parent
COMMAND = str(SCRIPTS / "jupyter-to-job")
PAPERMILL = str(SCRIPTS / "papermill")


@dataclass
class Workspace:
    """Folders below `root`; `exchange` is the one in use."""

    root: Path
    exchange: Path = field(init=False)
    _made: int = 0

    def __post_init__(self) -> None:
        self.folder = self.root / "workspace"
        self.home = self.root / "home"
        for folder in (self.folder, self.home):
            folder.mkdir()
        self.use_new_exchange()

    def use_new_exchange(self) -> None:
        """Use a new exchange: nothing runs for it."""
        self._made += 1
        self.exchange = self.root / f"exchange-{self._made}"

    @property
    def environment(self) -> dict[str, str]:
        return {
            **caller_environment(),
            "HOME": str(self.home),
            "JUPYTER_TO_JOB_EXCHANGE": str(self.exchange),
            "JUPYTER_TO_JOB_CAPACITY": f"cpu={os.cpu_count()},memory=16Gi",
        }

    def notebook(self, name: str, *cells: str) -> Path:
        made = new_notebook(cells=[new_code_cell(cell) for cell in cells])
        made.metadata.kernelspec = {
            "name": "python3",
            "display_name": "Python 3",
            "language": "python",
        }
        path = self.folder / name
        nbformat.write(made, path)
        return path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
        )

    def time_command(self, *command: str) -> float:
        """Return the seconds that a command took."""
        began = time.perf_counter()
        self.run(*command)
        return time.perf_counter() - began

    def dispatchers(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                line = process.cmdline()
                if "jupyter_to_job.dispatcher" in line and str(self.exchange) in line:
                    yield process

    def wait_until_idle(self) -> None:
        """Wait for all jobs, and end the dispatcher: the next run must not share the machine."""
        names = self.run(COMMAND, "list", "--all", "--json").stdout
        if '"name"' in names:
            self.run(COMMAND, "wait", *_names(names))
        for process in list(self.dispatchers()):
            process.terminate()
            process.wait(30)


def _names(listed: str) -> list[str]:
    return [job["name"] for job in json.loads(listed)]
