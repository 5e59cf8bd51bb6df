"""A real JupyterLab for one test: its own home, folders and port, and nothing left at its end.

``JUPYTER_TO_JOB_LAB_PYTHON`` names the interpreter of an environment in which JupyterLab and our
wheel are installed, ``JUPYTER_TO_JOB_TOGETHER_PYTHON`` that of one with jupyter-collaboration, too;
without the former this test's own interpreter is taken.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.ports import free_port

START_SECONDS = 300
TOKEN = "a-token-of-the-ui-tests"  # the server lives for one test, on the loopback interface
Settings = dict[str, dict[str, object]]
QUIET: Settings = {"@jupyterlab/apputils-extension/notification": {"fetchNews": "false"}}
DARK: Settings = {"@jupyterlab/apputils-extension/themes": {"theme": "JupyterLab Dark"}}
TWO_FLAVORS = {
    "catalog": """apiVersion: jupyter-to-job.io/v1
default: {flavor: small, device: cpu}
flavors:
  small: {title: Small, cpu: 1, memory: 2Gi, max_runtime: 1h, devices: [cpu]}
  long: {title: Long, cpu: 1, memory: 2Gi, max_runtime: 4h, devices: [cpu]}
devices:
  cpu: {title: CPU}
""",
}
"""A catalog of two flavors that differ in their time limits."""
NOTHING_RUNS = {"variables": {"JUPYTER_TO_JOB_BACKEND": "memory"}}
"""For tests of submitting alone: jobs end as if they had run, and no kernel is started."""


@dataclass
class Lab:
    """A server whose every folder lies under ``base``; ``program`` may be ``notebook``."""

    base: Path
    settings: Settings = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    catalog: str | None = None
    config: str | None = None
    program: str = "lab"
    python: str = os.environ.get("JUPYTER_TO_JOB_LAB_PYTHON", sys.executable)
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    scratch: str = ""
    """For temporary files: a short path, for sockets lie there."""

    @property
    def root(self) -> Path:
        """The workspace: what the file browser shows."""
        return self.base / "work"

    @property
    def exchange(self) -> Path:
        """The job directories of the server itself, without a gateway."""
        return self.base / "data" / "jupyter-to-job" / "exchange"

    @property
    def log(self) -> str:
        """What the server and all that it started have printed."""
        return (self.base / "server.log").read_text(errors="replace")

    @property
    def url(self) -> str:
        """JupyterLab with a fresh layout."""
        return f"http://127.0.0.1:{self.port}/lab?reset&token={TOKEN}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables of its user: nothing of the caller's Jupyter, every folder of its own."""
        home = self.base / "home"
        home.mkdir(parents=True, exist_ok=True)
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("JUPYTER", "IPYTHON", "JPY_", "XDG_", "PYTHON"))
        }
        return {
            **kept,
            "HOME": str(home),
            "TMPDIR": self.scratch,
            "PATH": os.pathsep.join(
                [str(self.base / "bin"), str(Path(self.python).parent), os.environ["PATH"]]
            ),
            "JUPYTER_CONFIG_DIR": str(self.base / "config"),
            "JUPYTER_DATA_DIR": str(self.base / "data"),
            "JUPYTER_RUNTIME_DIR": str(self.base / "runtime"),
            "JUPYTERLAB_SETTINGS_DIR": str(self.base / "settings"),
            "JUPYTERLAB_WORKSPACES_DIR": str(self.base / "workspaces"),
            **self.variables,
        }

    def write(
        self, path: str, *cells: str, tags: tuple[str, ...] = (), kernel: str = "python3"
    ) -> Path:
        """Put a notebook with these code cells into the workspace; the first one has the tags."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        notebook = {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {
                "kernelspec": {"name": kernel, "display_name": kernel, "language": "python"},
                "language_info": {"name": "python"},
            },
            "cells": [
                {
                    "cell_type": "code",
                    "id": f"cell-{index}",
                    "metadata": {"tags": list(tags)} if tags and index == 0 else {},
                    "source": source,
                    "execution_count": None,
                    "outputs": [],
                }
                for index, source in enumerate(cells)
            ],
        }
        target.write_text(json.dumps(notebook))
        return target

    def is_delivered(self, name: str) -> bool:
        """Tell whether it is recorded that a job's result was delivered."""
        return (self.exchange / name / "delivery.json").exists()

    @contextlib.contextmanager
    def running(self) -> Iterator[Lab]:
        """Start the server, wait until it answers, and end all that it started afterwards."""
        self._write_settings()
        self.root.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        with tempfile.TemporaryDirectory(prefix="ui-", ignore_cleanup_errors=True) as scratch:
            self.scratch = scratch
            try:
                self.start()
                yield self
            finally:
                self._end_everything()

    def start(self) -> None:
        """Start the server, after it was killed on the port that it had, and wait for it."""
        command = [
            *(str(Path(self.python).with_name(f"jupyter-{self.program}")), "--no-browser"),
            f"--ServerApp.root_dir={self.root}",
            *(f"--ServerApp.port={self.port}", "--ServerApp.port_retries=0"),
            *("--ServerApp.ip=127.0.0.1", f"--IdentityProvider.token={TOKEN}"),
            "--LabApp.expose_app_in_browser=True",
            "--JupyterNotebookApp.expose_app_in_browser=True",
            *(["--ServerApp.allow_root=True"] if os.geteuid() == 0 else []),
            "--LanguageServerManager.autodetect=False",  # it asks Node.js for its packages
            *self.arguments,
        ]
        with (self.base / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                command,
                env=self.environment,
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._wait_until_it_answers()

    def owns(self, process: psutil.Process) -> bool:
        """Tell whether a process is this server's, or one that it started: by its home."""
        try:
            return process.environ().get("HOME") == str(self.base / "home")
        except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
            return False

    def _write_settings(self) -> None:
        page = self.base / "config" / "labconfig" / "page_config.json"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text('{"buildCheck": false}')  # the check starts Node.js at each page
        node = self.base / "bin" / "node"
        node.parent.mkdir(parents=True, exist_ok=True)
        node.write_text("#!/bin/sh\n")  # JupyterLab asks it at each start for a setting of Yarn
        node.chmod(0o755)
        for plugin, values in {**QUIET, **self.settings}.items():
            target = self.base / "settings" / f"{plugin}.jupyterlab-settings"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(json.dumps(values))
        if self.catalog is not None:
            (self.base / "config").mkdir(parents=True, exist_ok=True)
            (self.base / "config" / "flavors.yaml").write_text(self.catalog)
        if self.config is not None:
            (self.base / "config").mkdir(parents=True, exist_ok=True)
            (self.base / "config" / "jupyter_server_config.py").write_text(self.config)

    def _wait_until_it_answers(self) -> None:
        assert self.process is not None
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/status", headers={"Authorization": f"token {TOKEN}"}
        )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                with urllib.request.urlopen(request, timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise AssertionError(f"JupyterLab did not start:\n{self.log}")

    def _end_everything(self) -> None:
        """Kill the server and what lives in its home: nobody will look at what they leave."""
        if self.process is None:
            return  # it could not even be started
        self.process.kill()
        self.process.wait()
        while left := [process for process in psutil.process_iter() if self.owns(process)]:
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            time.sleep(0.02)  # whoever reaps them may take longer, and a zombie is nobody's
