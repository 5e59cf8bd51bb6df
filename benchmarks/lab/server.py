"""A JupyterLab with the extension, or one that has never heard of it."""

from __future__ import annotations

import os
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil

from tests.ui.lab import START_SECONDS, TOKEN, Lab

KINDS = ("without", "with")
OURS = "jupyter-to-job"
LOOK = 0.005  # seconds between two looks whether the server answers


def lab_python() -> str:
    """The interpreter of the environment that JupyterLab and our wheel are in."""
    return os.environ.setdefault(
        "JUPYTER_TO_JOB_LAB_PYTHON", str(Path.cwd() / ".venv-lab/bin/python")
    )


class Start(Lab):
    """A server that says how long it took to answer, and what processor time."""

    seconds: float
    processor: float

    def __init__(self, base: Path, kind: str) -> None:
        base.mkdir()
        extensions = base / "labextensions"
        extensions.mkdir()
        shared = Path(lab_python()).parents[1] / "share" / "jupyter" / "labextensions"
        for extension in shared.iterdir():
            if kind == "with" or extension.name != OURS:
                (extensions / extension.name).symlink_to(extension)
        enabled = f'{{"jupyter_to_job.server": {kind == "with"}}}'
        super().__init__(
            base,
            arguments=[
                f"--LabApp.labextensions_path={extensions}",
                f"--ServerApp.jpserver_extensions={enabled}",
            ],
        )

    def start(self) -> None:
        """Start it; its seconds begin with the command."""
        self._began = time.monotonic()
        super().start()

    def _wait_until_it_answers(self) -> None:
        assert self.process is not None
        address = f"http://127.0.0.1:{self.port}/api/status?token={TOKEN}"
        while time.monotonic() - self._began < START_SECONDS and self.process.poll() is None:
            try:
                with urllib.request.urlopen(address, timeout=5):
                    self.seconds = time.monotonic() - self._began
                    times = psutil.Process(self.process.pid).cpu_times()
                    self.processor = times.user + times.system
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(LOOK)
        raise AssertionError(f"JupyterLab did not start:\n{self.log}")
