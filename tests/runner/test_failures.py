"""Every way in which a run fails by itself: reason, exit code, banner, and what was printed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import papermill
import pytest

from job_runner.protocol import layout
from job_runner.protocol.fold import log_text

from .jobs import Job, banner, code, make_job, notebook, stream, text, until

DEEP = "[" * 300 + "]" * 300
CASES = {
    "raises": (notebook(text("# T"), "print('kept')", "1 / 0", "print('no')"), "CellError", 1),
    "exits": (notebook("print('kept')", "import sys; sys.exit(0)", "1"), "ExitedEarly", 1),
    "exits where it may raise": (
        notebook("print('kept')", code("import sys; sys.exit(3)", "raises-exception"), "1"),
        "ExitedEarly",
        1,
    ),
    "quits": (notebook("print('kept')", "exit()", "1"), "ExitedEarly", 1),
    "asks": (notebook("print('kept')", "input('name?')"), "InputRequested", 1),
    "gpu": (
        notebook(
            "print('kept')", "class OutOfMemoryError(Exception): pass\nraise OutOfMemoryError"
        ),
        "GpuOutOfMemory",
        1,
    ),
    "dies": (
        notebook("print('kept')", "import os; os.kill(os.getpid(), 9)"),
        "KernelDied",
        4,
    ),
    "leaves": (notebook("print('kept')", "import os; os._exit(0)"), "KernelDied", 4),
    "unknown kernel": (notebook("print('no')", kernel="no-such-kernel"), "NoKernel", 3),
    "no notebook": ("{", "BadNotebook", 2),
    "deep notebook": (
        f'{{"nbformat": 4, "nbformat_minor": 5, "metadata": {{"x": {DEEP}}}, "cells": []}}',
        "BadNotebook",
        2,
    ),
    "odd notebook": ('{"nbformat": 4, "nbformat_minor": 5, "metadata": {}}', "BadNotebook", 2),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Job, int]]:
    """All cases, two at a time: most of a run is waiting for a kernel."""
    folder = tmp_path_factory.mktemp("exchange")
    jobs = {name: make_job(folder / name, snapshot) for name, (snapshot, _, _) in CASES.items()}
    with ThreadPoolExecutor(2) as pool:
        codes = pool.map(lambda job: job.run(), jobs.values())
    return {name: (job, code) for (name, job), code in zip(jobs.items(), codes, strict=True)}


@pytest.mark.parametrize("name", CASES)
def test_reason_and_exit_code(name: str, runs: dict[str, tuple[Job, int]]) -> None:
    job, exit_code = runs[name]
    outcome = job.outcome()
    _, reason, expected = CASES[name]
    assert (outcome.state, outcome.reason, exit_code) == ("failed", reason, expected)
    assert outcome.exit_code == expected
    assert outcome.message


@pytest.mark.parametrize("name", ["raises", "exits", "quits", "asks", "gpu", "dies", "leaves"])
def test_what_was_printed_is_kept(name: str, runs: dict[str, tuple[Job, int]]) -> None:
    job, _ = runs[name]
    result = job.result()
    printed = "".join(stream(c) for c in result.cells if c.cell_type == "code")
    assert printed.startswith("kept\n")
    assert len(banner(result)) == 2
    assert job.outcome().cells["done"] == 1
    failed = [c for c in result.cells if c.metadata.get("papermill", {}).get("status") == "failed"]
    assert len(failed) == 1
    assert result.metadata.papermill.exception is True


def test_a_job_without_a_kernel_says_so_in_its_notebook(runs: dict[str, tuple[Job, int]]) -> None:
    result = runs["unknown kernel"][0].result()
    assert "NoKernel" in result.cells[0].source
    assert result.cells[1].source == "print('no')"


def test_what_is_no_notebook_has_no_result(runs: dict[str, tuple[Job, int]]) -> None:
    job, _ = runs["no notebook"]
    assert job.outcome().result_sha256 is None
    assert not (job.attempt() / layout.RESULT).exists()


def test_the_banner_is_papermills(runs: dict[str, tuple[Job, int]], tmp_path: Path) -> None:
    source, output = tmp_path / "in.ipynb", tmp_path / "out.ipynb"
    source.write_text(CASES["raises"][0])
    with pytest.raises(papermill.PapermillExecutionError):
        papermill.execute_notebook(source, output, progress_bar=False)
    theirs = papermill.iorw.load_notebook_node(str(output))
    ours = runs["raises"][0].result()
    assert banner(ours) == banner(theirs)
    assert [c.source for c in ours.cells] == [c.source for c in theirs.cells]
    for our, their in zip(ours.cells, theirs.cells, strict=True):
        assert our.metadata.get("tags") == their.metadata.get("tags")
        for key in ("status", "exception"):
            assert our.metadata.get("papermill", {}).get(key) == (
                their.metadata.get("papermill", {}).get(key)
            ), our.source


def test_a_rerun_of_the_result_has_no_old_banner(
    runs: dict[str, tuple[Job, int]], job: Callable[..., Job]
) -> None:
    failed = (runs["raises"][0].attempt() / layout.RESULT).read_text()
    again = job(failed.replace("1 / 0", "1 / 1"))
    assert again.run() == 0
    assert banner(again.result()) == []
    assert again.result().metadata.papermill.exception is None


def test_logs_show_text_and_traceback(runs: dict[str, tuple[Job, int]]) -> None:
    log = "".join(log_text(runs["raises"][0].records()))
    assert log.startswith("kept\n") and "ZeroDivisionError" in log


def test_deadline(job: Callable[..., Job]) -> None:
    late = job(notebook("import time\nprint('kept')\ntime.sleep(60)"), max_runtime=1)
    assert late.run() == 5
    assert late.outcome().reason == "DeadlineExceeded"
    assert stream(late.result().cells[-1]) == "kept\n"


def test_a_folder_that_is_gone(job: Callable[..., Job], tmp_path: Path) -> None:
    lost = job(notebook("1"), cwd=str(tmp_path / "gone"))
    assert lost.run() == 2
    assert lost.outcome().reason == "BadNotebook"
    assert "gone" in str(lost.outcome().message)


def test_no_request_is_a_wrong_call(tmp_path: Path) -> None:
    assert Job(tmp_path).run() == 2
    assert list(tmp_path.iterdir()) == []


def test_out_of_memory(job: Callable[..., Job]) -> None:
    """A real control group with a real limit, which the kernel's process grows out of."""
    root = Path("/sys/fs/cgroup/memory")
    group = root / f"job-runner-test-{os.getpid()}"
    if os.geteuid() != 0 or not (root / "memory.limit_in_bytes").exists():
        pytest.skip("needs root and a writable memory cgroup (version 1)")
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(400 << 20))
        hungry = job(notebook("print('kept')", "x = []\nwhile True: x.append(bytearray(1 << 24))"))
        enter = f'echo $$ > {group}/cgroup.procs; exec "$@"'
        process = hungry.start(before=("sh", "-c", enter, "sh"))
        process.wait(timeout=60)
        assert process.returncode == 4
        assert hungry.outcome().reason == "OutOfMemory"
        assert hungry.printed() == "kept\n"
    finally:
        until(lambda: not (group / "cgroup.procs").read_text().strip(), "an empty control group")
        group.rmdir()


def test_a_full_disk(tmp_path: Path) -> None:
    """The reason is written although the disk is full; the rest as soon as there is room."""
    unshare = shutil.which("unshare")
    if os.geteuid() != 0 or unshare is None:
        pytest.skip("needs root and unshare to mount a small disk")
    disk, room = tmp_path / "disk", tmp_path / "room"
    disk.mkdir()
    script = (
        "mount -t tmpfs -o size=4m none $DISK && cp -r $ROOM/job $DISK/ && "
        "$PYTHON -m job_runner run $DISK/job; echo run $?; "
        "mount -o remount,size=64m $DISK && $PYTHON -m job_runner finish $DISK/job; echo finish $?;"
        "cp -r $DISK/job $ROOM/after"
    )
    make_job(
        room / "job",
        notebook("print('kept')", "for i in range(90): print('x' * 100_000, flush=True)"),
    )
    ran = subprocess.run(
        [unshare, "--mount", "sh", "-c", script],
        env={**os.environ, "DISK": str(disk), "ROOM": str(room), "PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        timeout=60,
        check=True,
    )
    assert ran.stdout.split() == [b"run", b"74", b"finish", b"0"]
    job = Job(room / "after")
    assert job.outcome().reason == "DiskFull"
    assert job.printed().startswith("kept\n" + "x" * 1000)
    assert "DiskFull" in job.result().cells[0].source
