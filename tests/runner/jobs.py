"""Job directories to run, and what a run left in them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import psutil
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from job_runner.protocol import documents, layout
from job_runner.protocol.journal import journal
from job_runner.protocol.outcome import Outcome, read_outcome

from ..processes import BOUND as BOUND
from ..processes import until as until

CAPTURING = ("env", "-u", "PYTEST_CURRENT_TEST")
"""For `before`: with this variable ipykernel does not capture what other programs print."""
RUNNER = [sys.executable, "-m", "job_runner"]
SEEN = """\
import pathlib
from job_runner.resources.monitor import Monitor
add_tree = Monitor._add_tree
def add_and_tell(monitor, tree, moment):
    add_tree(monitor, tree, moment)
    if tree.exact and tree.memory > {size}: pathlib.Path({path!r}).touch()
Monitor._add_tree = add_and_tell
"""
"""For `changed_runner`: touch `path` once the monitor has an exact sample of over `size` bytes."""


def changed_runner(change: str) -> list[str]:
    """The runner as it is, but for what `change`, in Python, replaces in it."""
    run = "import runpy; runpy.run_module('job_runner', run_name='__main__', alter_sys=True)"
    return [sys.executable, "-c", f"{change}\n{run}"]


def code(source: str, *tags: str) -> Any:
    return new_code_cell(source, metadata={"tags": list(tags)} if tags else {})


def text(source: str) -> Any:
    return new_markdown_cell(source)


def notebook(*cells: Any, kernel: str | None = "python3") -> str:
    made = new_notebook(cells=[code(c) if isinstance(c, str) else c for c in cells])
    if kernel:
        made.metadata.kernelspec = {"name": kernel, "display_name": kernel, "language": "python"}
    return str(nbformat.writes(made))


@dataclass
class Job:
    """One job directory; `run` and `start` put a runner to it."""

    directory: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def attempt(self, number: int = 1) -> Path:
        return layout.attempt_dir(self.directory, number)

    def start(
        self,
        *arguments: str,
        before: tuple[str, ...] = (),
        runner: Sequence[str] = RUNNER,
        **env: str,
    ) -> Any:
        command = [*before, *runner, "run", str(self.directory), *arguments]
        with self.directory.with_suffix(".log").open("ab") as log:
            process = subprocess.Popen(
                command, env={**os.environ, **env}, stderr=log, start_new_session=True
            )
        self.processes.append(process)
        return process

    def run(self, *arguments: str, **env: str) -> int:
        process = self.start(*arguments, before=(), **env)
        process.wait(timeout=BOUND)
        return int(process.returncode)

    def finish(self, *arguments: str, before: tuple[str, ...] = (), **env: str) -> int:
        command = [*before, *RUNNER, "finish", str(self.directory), *arguments]
        variables = {**os.environ, **env}
        return subprocess.run(command, env=variables, timeout=BOUND, check=False).returncode

    def records(self, number: int = 1) -> list[dict[str, Any]]:
        directory = self.attempt(number) / layout.JOURNAL
        return [entry.record for entry in journal.read_journal(directory)]

    def printed(self) -> str:
        outputs = [r["output"] for r in self.records() if r["k"] == "output"]
        return "".join(o["text"] for o in outputs if o["output_type"] == "stream")

    def outcome(self, number: int = 1) -> Outcome:
        outcome = read_outcome(self.attempt(number))
        assert outcome is not None
        return outcome

    def result(self, number: int = 1) -> Any:
        """The result, which must be valid."""
        node = nbformat.read(self.attempt(number) / layout.RESULT, as_version=4)
        nbformat.validate(node)
        return node

    def kernel_pid(self) -> int:
        return int(next(r["pid"] for r in self.records() if r["k"] == "kernel"))


def make_job(directory: Path, snapshot: str, **request: Any) -> Job:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / layout.SNAPSHOT).write_text(snapshot)
    asked = {
        "name": "train-abcd2345",
        "notebook": "folder/train.ipynb",
        "parameters": {},
        "env": {},
        "cwd": str(directory.parent),
        "isolated": False,
        "kernel": None,
        "max_runtime": None,
    }
    documents.write_document(directory / layout.REQUEST, {**asked, **request})
    return Job(directory)


def stream(cell: Any) -> str:
    return "".join(o.text for o in cell.outputs if o.output_type == "stream")


def banner(result: Any) -> list[str]:
    """The sources of the cells that papermill would remove on a rerun."""
    tag = "papermill-error-cell-tag"
    return [c.source for c in result.cells if tag in c.metadata.get("tags", [])]


def names(processes: Iterable[psutil.Process]) -> list[str]:
    """The names of those processes that have not ended meanwhile."""
    found = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(process.name())
    return found


def load(path: Path) -> Any:
    return json.loads(path.read_text())
