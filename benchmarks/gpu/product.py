"""Our command line in a workspace of its own, with the shipped catalog and this machine's GPUs."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import nbformat
import psutil

from job_runner.kernel.cleanup import ATTEMPT_VARIABLE

from ..cli.workspace import COMMAND, Workspace

ON_GPU = ("-f", "gpu-1", "-d", "nvidia")
_TIMEOUT = 120.0


class Product(Workspace):
    """Submits notebooks, and reads what became of them."""

    @property
    def environment(self) -> dict[str, str]:
        # Cores and memory are only counted, and the driver is asked for the GPUs.
        return {**super().environment, "JUPYTER_TO_JOB_CAPACITY": "cpu=16,memory=64Gi"}

    def call(self, *arguments: str) -> str:
        """Run `jupyter-to-job`, whatever its exit code, and return what it prints."""
        ran = subprocess.run(
            [COMMAND, *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
        )
        assert ran.stdout, ran.stderr
        return ran.stdout

    def submit(self, name: str, *cells: str, on: tuple[str, ...] = ON_GPU) -> str:
        """Submit a notebook of these cells, and return the job's name."""
        self.notebook(f"{name}.ipynb", *cells)
        return self.call("submit", f"{name}.ipynb", *on).strip()

    def show(self, job: str) -> dict[str, Any]:
        shown: dict[str, Any] = json.loads(self.call("show", job, "--json"))
        return shown

    def wait(self, *jobs: str) -> list[dict[str, Any]]:
        """Wait until these jobs have ended, and return them."""
        self.call("wait", *jobs)
        return [self.show(job) for job in jobs]

    def execute(self, name: str, *cells: str, on: tuple[str, ...] = ON_GPU) -> dict[str, Any]:
        """Submit a notebook, and return the job when it has ended."""
        return self.wait(self.submit(name, *cells, on=on))[0]

    def cells(self, job: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """Return what each cell of a job's result printed, and its receipt."""
        path = self.folder / job["delivery"]["path"]
        return cells_of(path)

    def wait_for(self, name: str) -> str:
        """Wait until a notebook has written this file into the workspace; return its content."""
        path, end = self.folder / name, time.monotonic() + _TIMEOUT
        while not (path.exists() and path.read_text().endswith("\n")):
            assert time.monotonic() < end, f"no {name}"
            time.sleep(0.02)
        content = path.read_text().strip()
        path.unlink()
        return content

    def runner(self, job: str) -> int:
        """Return the process id of a job's runner."""
        document = json.loads((self.exchange / job / "attempt-1" / "runner.json").read_text())
        return int(document["pid"])

    def close(self) -> None:
        """End what is left of jobs and their dispatcher."""
        for process in [*self.dispatchers(), *self.processes()]:
            with contextlib.suppress(psutil.Error):
                process.kill()

    def processes(self) -> list[psutil.Process]:
        """Return the processes of jobs that are still there."""
        return [p for p in psutil.process_iter() if _mark(p).startswith(str(self.exchange))]


def cells_of(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return what each code cell of an executed notebook printed, and its receipt."""
    notebook = nbformat.read(path, as_version=4)
    return [
        (
            "".join(output.get("text", "") for output in cell.outputs),
            dict(cell.metadata.get("jupyter_to_job", {})),
        )
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def _mark(process: psutil.Process) -> str:
    try:
        return str(process.environ().get(ATTEMPT_VARIABLE, ""))
    except psutil.Error:
        return ""
