"""What a server's exports may take of it: how many at a time, and none that outlives its end."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from jupyter_to_job.domain.errors import BadInput, Unavailable
from jupyter_to_job.service import export

from ..processes import BOUND, until


def replace_python(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Have a script run instead of nbconvert."""
    program = folder / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))


def ask() -> None:
    export.export_notebook(io.BytesIO(b"{}"), "train", "html", with_code=True).close()


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_what_nbconvert_started_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be a browser, and nobody else would end it."""
    replace_python(tmp_path, monkeypatch, f"sleep 300 & echo $! > {tmp_path}/pid; wait")
    monkeypatch.setattr(export, "TIMEOUT", 5)
    began = time.monotonic()
    with pytest.raises(BadInput, match="nbconvert took over"):
        ask()
    assert time.monotonic() - began < BOUND
    pid = int((tmp_path / "pid").read_text())
    until(lambda: not is_running(pid) or None, "the program's own program has ended")


def test_only_some_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are threads of those that submissions are copied in."""
    gate, started = tmp_path / "gate", tmp_path / "started"
    os.mkfifo(gate)
    os.mkfifo(started)
    replace_python(tmp_path, monkeypatch, f"echo > {started}; head -c 1 {gate}; touch train.html")
    threads = [threading.Thread(target=ask) for _ in range(export.MAX_EXPORTS)]
    for thread in threads:
        thread.start()
        started.read_bytes()  # until it runs
    with pytest.raises(Unavailable, match="2 results are being exported"):
        ask()
    with gate.open("r+b", buffering=0) as go_on:
        go_on.write(b"." * export.MAX_EXPORTS)
        for thread in threads:
            thread.join(BOUND)
            assert not thread.is_alive()


def test_a_pdf_needs_the_browser_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "find_spec", lambda _: object())  # playwright
    monkeypatch.setenv("PATH", str(tmp_path))  # neither XeLaTeX nor Pandoc
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "browsers"))
    assert export.export_formats() == ["html"]
    (tmp_path / "browsers" / "chromium_headless_shell-1200").mkdir(parents=True)
    assert export.export_formats() == ["html", "pdf"]
