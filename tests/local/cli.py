"""`jupyter-to-job` as a process, and what its jobs leave behind."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from job_runner.protocol.journal.journal import read_journal
from job_runner.protocol.log_text import log_text

from .. import notebooks
from ..processes import BOUND, processes, until
from .terminal import Terminal

COMMAND = str(Path(sys.executable).with_name("jupyter-to-job"))

POWERLESS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.geteuid() == 0 else ()
"""Goes before a command: root may do as its files' owner only."""

WAITING_CELL = """\
print('before', flush=True)
import os, time
while not os.path.exists('go'):
    time.sleep(0.02)
print('after')
"""
"""A cell that says something, and goes on when the test lets it."""


@dataclass
class Cli:
    """The command line of one user, in `workspace`."""

    workspace: Path
    exchange: Path
    home: Path
    capacity: str = "cpu=2,memory=8Gi"
    variables: dict[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = (COMMAND,)
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        others = ("JUPYTER", "IPYTHON", "NO_COLOR", "FORCE_COLOR")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(others)}
        settings = {
            "HOME": str(self.home),
            "JUPYTER_TO_JOB_EXCHANGE": self.exchange.as_uri(),
            "JUPYTER_TO_JOB_CAPACITY": self.capacity,
        }
        return {**kept, **settings, **self.variables}

    def start(self, *arguments: str, stdin: int | None = None) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*self.command, *arguments],
            stdin=stdin,
            cwd=self.workspace,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def on_terminal(self, *arguments: str, rows: int = 24, columns: int = 100) -> Terminal:
        """Start the command on a terminal of its own."""
        return Terminal(
            [*self.command, *arguments], self.workspace, self.environment, rows, columns
        )

    def run(
        self, *arguments: str, stdin_text: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments, stdin=None if stdin_text is None else subprocess.PIPE)
        out, err = process.communicate(stdin_text, timeout=2 * BOUND)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def json(self, *arguments: str, code: int = 0) -> Any:
        ran = self.run(*arguments, "--json")
        assert ran.returncode == code, ran.stderr
        return json.loads(ran.stdout)

    def submit(self, *arguments: str) -> str:
        """Submit, and return the job's name."""
        ran = self.run("submit", *arguments)
        assert ran.returncode == 0, ran.stderr
        (name,) = ran.stdout.split()
        return name

    def submit_waiting(self, *arguments: str) -> str:
        """Submit a job whose first cell has printed `before`, and waits for `release`."""
        notebooks.write(self.workspace / "waits.ipynb", WAITING_CELL, "print('end')")
        name = self.submit("waits.ipynb", *arguments)
        self.until_printed(name, "before")
        return name

    def until_printed(self, name: str, text: str) -> None:
        until(lambda: text in self.printed(name), f"{name} prints {text!r}")

    def release(self) -> None:
        (self.workspace / "go").touch()

    def printed(self, name: str) -> str:
        """What a job has printed so far."""
        journal = read_journal(self.exchange / name / "attempt-1" / "journal")
        return "".join(log_text(entry.record for entry in journal))

    def results(self, name: str) -> list[str]:
        return sorted(p.name for p in self.workspace.rglob(f"{name}*.ipynb"))

    def result(self, job: dict[str, Any]) -> Path:
        return self.workspace / str(job["delivery"]["path"])

    def dispatchers(self) -> list[psutil.Process]:
        """Dispatchers, without the copies of themselves that deliver."""
        found = processes("jupyter_to_job.dispatcher", self.exchange)
        pids = {process.pid for process in found}
        return [process for process in found if not _is_child_of(process, pids)]

    def runner(self, name: str) -> psutil.Process:
        (found,) = processes("job_runner", self.exchange / name)
        return found

    def end(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()


def _is_child_of(process: psutil.Process, pids: set[int]) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.ppid() in pids
    return True  # gone meanwhile
