"""jupyter-scheduler: what its button sends, and its store filled by its own ORM."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import time
from collections.abc import Collection
from pathlib import Path

from .client import Client
from .server import NOTEBOOK, MeasuredServer

VERSION = "2.12"
PAGE = 1000
_ENDED = ("COMPLETED", "FAILED")
"""Not STOPPED: that is what it calls a job that has not begun."""


class PeerServer(MeasuredServer):
    """jupyter-scheduler with its default scheduler, executor and database."""

    name = "peer"
    extension = "jupyter_scheduler"

    @property
    def database(self) -> Path:
        """Return the default place of its database."""
        return self.root / "data" / "scheduler.sqlite"

    def submit(self, client: Client) -> str:
        body = {
            "name": "trivial",
            "input_uri": NOTEBOOK,
            "output_formats": ["ipynb"],
            "runtime_environment_name": "python",
            "tags": [],
            "package_input_folder": False,
        }
        return str(client.request("POST", "/scheduler/jobs", body)["job_id"])

    def unfinished(self, jobs: Collection[str]) -> set[str]:
        """Look at its database, for asking the server would slow it down; and only once there is a
        result, for whoever reads makes its writers wait.
        """
        written = {job for job in jobs if self.result_path(job).exists()}
        if not written:
            return set(jobs)
        try:
            with contextlib.closing(
                sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)
            ) as db:
                states = dict(db.execute("SELECT job_id, status FROM jobs").fetchall())
        except sqlite3.OperationalError:  # locked: they write just now
            return set(jobs)
        return {job for job in jobs if job not in written or states[job] not in _ENDED}

    def result_path(self, job: str) -> Path:
        staged = self.root / "data" / "scheduler_staging_area" / job
        return next((p for p in staged.glob("*.ipynb") if p.name != NOTEBOOK), staged / "none")

    def list_jobs(self, client: Client) -> int:
        return len(client.request("GET", "/scheduler/jobs")["jobs"])

    def list_some_jobs(self, client: Client, jobs: int) -> int:
        """Ask for as few jobs as ours shows."""
        return len(client.request("GET", f"/scheduler/jobs?max_items={jobs}")["jobs"])

    def download(self, client: Client, job: str) -> float:
        """Have the files put into the workspace; return the seconds until the notebook is there."""
        began = time.perf_counter()
        client.request("GET", f"/scheduler/jobs/{job}/download_files")
        there = self.workspace / "jobs" / f"trivial-{job}" / self.result_path(job).name
        self._until(there.exists, f"{job}'s files")
        return time.perf_counter() - began

    def add_jobs(self, jobs: int, sample: str) -> None:
        script = Path(__file__).with_name("fill_peer.py")
        url = f"sqlite:///{self.database}"
        command = [str(self.python), str(script), url, str(jobs), sample]
        subprocess.run(command, env=self.environment, check=True)


def scheduler_version(python: Path) -> str:
    """Return the version of jupyter-scheduler in an environment. Raises RuntimeError."""
    ask = "import importlib.metadata as m; print(m.version('jupyter-scheduler'))"
    try:
        ran = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise RuntimeError(f"no jupyter-scheduler by {python}: `make bench-server`") from error
    version = ran.stdout.strip()
    if not version.startswith(f"{VERSION}."):
        raise RuntimeError(f"jupyter-scheduler {version} is no {VERSION}")
    return version
