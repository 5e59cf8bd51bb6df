"""A command starts fast because what is slow to import is imported where it is used."""

from __future__ import annotations

import subprocess
import sys

SLOW = {
    "pydantic", "yaml", "sqlite3", "httpx", "tornado", "jupyter_client", "jupyter_server",
    "nbformat", "papermill", "psutil", "rich", "zmq",
}  # fmt: skip


def test_the_service_imports_nothing_slow() -> None:
    code = f"import jupyter_to_job.wiring, sys; print(sorted({SLOW} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
