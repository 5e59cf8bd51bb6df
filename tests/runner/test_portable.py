"""A run where the system lacks what only Linux has: the same, without its faster ways."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from job_runner.host import proc
from job_runner.protocol import liveness

from .jobs import Job, notebook

MISSING = """\
import os
for name in ("pidfd_open", "waitid", "fdatasync", "posix_fallocate", "sched_getaffinity"):
    delattr(os, name)
"""


@pytest.fixture
def elsewhere(tmp_path: Path) -> dict[str, str]:
    """The environment of a Python that has none of these calls, in the runner and its kernel."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(MISSING)
    return {"PYTHONPATH": str(folder)}


def test_a_run(job: Callable[..., Job], elsewhere: dict[str, str]) -> None:
    made = job(notebook("import os; print(hasattr(os, 'waitid'))"))
    assert made.run(**elsewhere) == 0
    assert made.printed() == "False\n"


def test_a_kernel_that_dies(job: Callable[..., Job], elsewhere: dict[str, str]) -> None:
    made = job(notebook("import os; os.kill(os.getpid(), 9)"))
    assert made.run(**elsewhere) == 4
    assert made.outcome().reason == "KernelDied"
    assert "SIGKILL" in (made.outcome().message or "")


@pytest.mark.skipif(shutil.which("ps") is None, reason="no ps here (Debian: procps)")
def test_who_a_process_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Told by `ps` where there is no /proc."""
    monkeypatch.setattr(proc, "PROC", Path("/nowhere"))
    runner = liveness.describe_process()
    assert runner["pid"] == os.getpid() and runner["start_time"]
    assert liveness.is_same_process(runner)
    assert not liveness.is_same_process({**runner, "start_time": "Sat Jan  1 00:00:00 2000"})
    assert not liveness.is_same_process({**runner, "pid": 2**22 + 1})
