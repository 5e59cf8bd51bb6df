"""A Jupyter Server with one extension, and folders that nobody shares: what both sides have."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import psutil

from tests.ports import free_port

from ..runner.measure import notebook
from ..runner.result_checks import Output, find_fault
from .client import Client
from .processes import ServerProcesses

START_TIMEOUT = 60.0
"""Seconds within which a server answers."""
JOB_TIMEOUT = 600.0
"""Seconds within which a job, alone on the machine, has ended and left."""
POLL_INTERVAL = 0.005
NOTEBOOK = "trivial.ipynb"
CELLS = ("import math\nprint(round(math.pi, 5))", "sum(range(1000))")
OUTPUTS: list[list[Output]] = [[("stdout", "3.14159\n")], [("execute_result", "499500")]]
PROGRAMS = ("jupyterlab", "jupyter_server")
_OTHERS = ("jupyter_lsp", "jupyter_server_terminals", "notebook", "notebook_shim")
"""Extensions that one of the environments may happen to have."""


class MeasuredServer(ABC):
    """One extension's server. Jobs are known by what `post` returns."""

    name: str
    extension: str

    def __init__(self, root: Path, python: Path, program: str) -> None:
        self.root, self.python, self.program = root, python, program
        self.workspace, self.home = root / "workspace", root / "home"
        for folder in (self.workspace, self.home, root / "config", root / "data"):
            folder.mkdir(parents=True)
        (self.workspace / NOTEBOOK).write_text(notebook(CELLS))
        self.processes = ServerProcesses(self.home)
        self._token = secrets.token_hex(16)
        self._port = 0
        self._server: subprocess.Popen[bytes] | None = None
        wanted, known = (self.extension, program), (self.extension, "jupyterlab", *_OTHERS)
        extensions = {name: name in wanted for name in known}
        config = {"ServerApp": {"jpserver_extensions": extensions}}
        (root / "config" / "jupyter_server_config.json").write_text(json.dumps(config))

    @abstractmethod
    def submit(self, client: Client) -> str:
        """Submit the notebook as the extension's own button does; return what the job is called."""

    @abstractmethod
    def unfinished(self, jobs: Collection[str]) -> set[str]:
        """Return those of `jobs` that have not ended, with their results in place."""

    @abstractmethod
    def result_path(self, job: str) -> Path:
        """Return where a job's executed notebook is."""

    @abstractmethod
    def list_jobs(self, client: Client) -> int:
        """Ask for the list's page that is measured; return how many jobs it has."""

    @abstractmethod
    def add_jobs(self, jobs: int, sample: str) -> None:
        """Bring the store to `jobs` jobs in all, copies of `sample`; the server does not run."""

    @property
    def environment(self) -> dict[str, str]:
        """Return the server's environment: nothing of the caller's Jupyter."""
        strange = ("JUPYTER", "IPYTHON", "JPY_", "XDG_", "PYTHON", "VIRTUAL_ENV")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(strange)}
        return {
            **kept,
            "HOME": str(self.home),
            "PATH": os.pathsep.join([str(self.python.parent), os.environ["PATH"]]),
            "JUPYTER_CONFIG_DIR": str(self.root / "config"),
            "JUPYTER_DATA_DIR": str(self.root / "data"),
            "JUPYTER_RUNTIME_DIR": str(self.root / "runtime"),
        }

    @contextlib.contextmanager
    def running(self) -> Iterator[Client]:
        """Start the server, wait until it answers, and end all that it started afterwards."""
        try:
            self._start()
            client = self.client()
            self._until_it_answers(client)
            yield client
            client.close()
        finally:
            self._end_everything()

    def client(self) -> Client:
        """Return a connection of its own to the server."""
        return Client(self._port, self._token)

    def wait_until_ended(self, job: str) -> None:
        """Wait until a job has ended. Raises TimeoutError."""
        self._until(lambda: not self.unfinished([job]), f"{job} to end")

    def wait_until_idle(self) -> None:
        """Wait until nothing of any job is left but what is on record. Raises TimeoutError."""
        self._until(lambda: not self.is_busy(), "all processes to leave", 10 * POLL_INTERVAL)

    def is_busy(self) -> bool:
        """Tell whether there is any process but the server and what stays by design."""
        assert self._server is not None
        return self.processes.is_busy(self._server.pid)

    def cpu_seconds(self) -> float:
        """Return the processor time of the server's own process."""
        assert self._server is not None
        times = psutil.Process(self._server.pid).cpu_times()
        return float(times.user + times.system)

    def check_result(self, job: str) -> str:
        """Return what is wrong with a job's result; empty if nothing is."""
        return find_fault(
            self.result_path(job), lambda seen: "" if seen == OUTPUTS else f"shows {seen}"
        )

    def log_tail(self) -> str:
        """Return the end of what the server said."""
        path = self.root / "server.log"
        return path.read_text(errors="replace")[-3000:] if path.exists() else ""

    def _until(self, done: Any, what: str, pause: float = POLL_INTERVAL) -> None:
        end = time.monotonic() + JOB_TIMEOUT
        while not done():
            if time.monotonic() > end:
                raise TimeoutError(
                    f"{self.name}: waited {JOB_TIMEOUT:g} s for {what}\n{self.log_tail()}"
                )
            time.sleep(pause)

    def _start(self) -> None:
        self._port = free_port()
        command = [
            *(str(self.python), "-m", self.program, "--no-browser"),
            f"--ServerApp.root_dir={self.workspace}",
            *("--ServerApp.ip=127.0.0.1", f"--ServerApp.port={self._port}"),
            *("--ServerApp.port_retries=0", f"--IdentityProvider.token={self._token}"),
            *(["--ServerApp.allow_root=True"] if os.geteuid() == 0 else []),
        ]
        with (self.root / "server.log").open("wb") as log:
            self._server = subprocess.Popen(
                command,
                cwd=self.workspace,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _until_it_answers(self, client: Client) -> None:
        assert self._server is not None
        end = time.monotonic() + START_TIMEOUT
        while True:
            try:
                client.request("GET", "/api/status")
                return
            except OSError as error:
                if time.monotonic() > end or self._server.poll() is not None:
                    why = f"{self.name}: the server does not answer\n{self.log_tail()}"
                    raise RuntimeError(why) from error
                client.close()
                time.sleep(0.05)

    def _end_everything(self) -> None:
        if self._server is None:
            return
        self._server.kill()
        self._server.wait()
        self._server = None
        while left := self.processes.pids():
            for pid in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    psutil.Process(int(pid)).kill()
            time.sleep(0.02)
