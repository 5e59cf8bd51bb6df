"""Every way in which a run fails by itself: reason, exit code, banner, and what was printed."""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import papermill
import pytest

from job_runner.protocol import layout
from job_runner.protocol.log_text import log_text
from jupyter_to_job.service.reading.cell_receipts import read_receipts

from .jobs import BOUND, Job, banner, code, make_job, notebook, stream, text

TORCH = "class OutOfMemoryError(RuntimeError): pass\ntext = 'CUDA out of memory. Tried 2 GiB'\n"
STUBBORN = "get_ipython().kernel._allow_stdin = True\nprint('asking', flush=True)\n"
"""As kernels do that take no notice of what they were told."""
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
    "exits with a text": (
        notebook("print('kept')", "%time raise SystemExit('no data today')", "1"),
        "ExitedEarly",
        1,
    ),
    "quits in a function": (
        notebook("print('kept')", "def f():\n    quit()\nf()\nprint('after')", "1"),
        "ExitedEarly",
        1,
    ),
    "exits last": (
        notebook("print('kept')", "import sys; sys.exit(1)", text("end"), ""),
        "ExitedEarly",
        1,
    ),
    "quits last with an error": (
        notebook("print('kept')", "exit(1)", text("end")),
        "ExitedEarly",
        1,
    ),
    "asks": (notebook("print('kept')", "input('name?')"), "InputRequested", 1),
    "asks for a secret": (
        notebook("print('kept')", "import getpass; getpass.getpass()"),
        "InputRequested",
        1,
    ),
    "asks all the same": (
        notebook("print('kept')", code(f"{STUBBORN}input('name? ')", "raises-exception"), "1"),
        "InputRequested",
        1,
    ),
    "debugs": (notebook("print('kept')", "import pdb; pdb.set_trace()\n1"), "InputRequested", 1),
    "gpu": (
        notebook("print('kept')", f"{TORCH}raise OutOfMemoryError(text)"),
        "GpuOutOfMemory",
        1,
    ),
    "gpu behind another error": (
        notebook(
            "print('kept')",
            f"{TORCH}try: raise OutOfMemoryError(text)\n"
            "except OutOfMemoryError as error: raise ValueError('training failed') from error",
        ),
        "GpuOutOfMemory",
        1,
    ),
    "no memory": (notebook("print('kept')", "x = bytearray(1 << 60)"), "OutOfMemory", 1),
    "no module": (notebook("print('kept')", "import cv2_of_old"), "CellError", 1),
    "dies": (
        notebook("print('kept')", "import os; os.kill(os.getpid(), 9)"),
        "KernelDied",
        4,
    ),
    "crashes": (
        notebook("print('kept')", "import ctypes\nctypes.string_at(0)"),
        "KernelDied",
        4,
    ),
    "leaves": (notebook("print('kept')", "import os; os._exit(3)"), "KernelDied", 4),
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
def late(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    """A run that ends at its time limit. Until then its cell has surely printed."""
    source = "import time\nprint('kept')\ntime.sleep(60)"
    made = make_job(tmp_path_factory.mktemp("exchange") / "job", notebook(source), max_runtime=10)
    process = made.start()
    yield made
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, late: Job) -> dict[str, tuple[Job, int]]:
    """All cases, two at a time: most of a run is waiting for a kernel, and `late` for its limit."""
    folder = tmp_path_factory.mktemp("exchange")
    # As a job from another machine: what its environment had stands in the request.
    there = {
        "environment": {"interpreter": "/opt/bin/python", "host": "there"},
        "packages": {"opencv-of-old": ["cv2_of_old"]},
    }
    jobs = {
        name: make_job(folder / name, snapshot, **there) for name, (snapshot, _, _) in CASES.items()
    }
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


SAID = {
    "raises": "Cell 3 (In [2]) raised ZeroDivisionError: division by zero.",
    "exits": "Cell 2 (In [2]) ended the run early with sys.exit(0): later cells did not run, and "
    "only a run of all cells counts as succeeded.",
    "exits with a text": "with sys.exit('no data today'): later cells did not run",
    "quits in a function": "Cell 2 (In [2]) ended the run early with exit() or quit(): later cells",
    "exits last": "Cell 2 (In [2]) ended the run with sys.exit(1).",
    "quits last with an error": "Cell 2 (In [2]) ended the run with exit() or quit().",
    "asks": "Cell 2 (In [2]) asked for keyboard input, and a job has nobody to ask. "
    "Use a parameter.",
    "gpu": "Cell 2 (In [2]) ran out of GPU memory (OutOfMemoryError: CUDA out of memory. Tried "
    "2 GiB). Choose a device or flavor with more, or a smaller batch.",
    "gpu behind another error": "(CUDA out of memory. Tried 2 GiB)",
    "no memory": "Cell 2 (In [2]) ran out of memory (MemoryError); the run had used ",
    "no module": "No module named 'cv2_of_old'. It is in the environment you submitted from, not "
    "in this one: add `%pip install opencv-of-old` to the notebook, or choose an image that has it",
    "dies": "The kernel died in cell 2: something killed it: the host, or its own code (SIGKILL); "
    'what was printed is kept. The last output was "kept".',
    "crashes": 'The last output was "kept". Its process said last: "Fatal Python error: '
    "Segmentation fault in string_at",
    "leaves": "its process ended with exit status 3 (os._exit, or a library that does)",
    "unknown kernel": "Install it, or choose another kernel in the notebook.",
}


@pytest.mark.parametrize("name", SAID)
def test_the_message_says_what_happened_and_what_to_do(
    name: str, runs: dict[str, tuple[Job, int]]
) -> None:
    """And the banner shows the same, as it is; for an exception it has papermill's own words."""
    job, _ = runs[name]
    outcome, result = job.outcome(), job.result()
    assert SAID[name] in str(outcome.message)
    if name == "no memory":
        assert re.search(r"the run had used [\d.]+ of [\d.]+ [GT]iB\.", str(outcome.message))
    top = html.unescape(result.cells[0].source)
    if outcome.reason != "CellError":
        assert f"{outcome.reason}: {outcome.message}</span>" in top
    elif name == "no module":
        assert "An Exception was encountered" in top and SAID[name].partition(". ")[2] in top


PRINTED = [name for name, (source, _, _) in CASES.items() if "kept" in source]


@pytest.mark.parametrize("name", PRINTED)
def test_what_was_printed_is_kept(name: str, runs: dict[str, tuple[Job, int]]) -> None:
    job, _ = runs[name]
    result = job.result()
    printed = "".join(stream(c) for c in result.cells if c.cell_type == "code")
    assert printed.startswith("kept\n") and "after" not in printed.partition("kept")[0]
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


@pytest.mark.parametrize(
    ("name", "wrong", "right"),
    [("raises", "1 / 0", "1 / 1"), ("no module", "import cv2_of_old", "import sys")],
)
def test_a_rerun_of_the_result_has_no_old_banner(
    name: str, wrong: str, right: str, runs: dict[str, tuple[Job, int]], job: Callable[..., Job]
) -> None:
    failed = (runs[name][0].attempt() / layout.RESULT).read_text()
    again = job(failed.replace(f'"{wrong}"', f'"{right}"'))
    assert again.run() == 0
    assert banner(again.result()) == []
    assert again.result().metadata.papermill.exception is None


def test_logs_show_text_and_traceback(runs: dict[str, tuple[Job, int]]) -> None:
    log = "".join(log_text(runs["raises"][0].records()))
    assert log.startswith("kept\n") and "ZeroDivisionError" in log


def test_deadline(late: Job) -> None:
    assert late.processes[0].wait(timeout=BOUND) == 5
    assert late.outcome().reason == "DeadlineExceeded"
    assert str(late.outcome().message).startswith("The time limit of 10 s was reached in cell 1;")
    assert "DeadlineExceeded: The time limit of 10 s" in banner(late.result())[0]
    assert stream(late.result().cells[-1]) == "kept\n"


def test_a_folder_that_is_gone(job: Callable[..., Job], tmp_path: Path) -> None:
    lost = job(notebook("1"), cwd=str(tmp_path / "gone"))
    assert lost.run() == 2
    assert lost.outcome().reason == "BadNotebook"
    assert "gone" in str(lost.outcome().message)


def test_no_request_is_a_wrong_call(tmp_path: Path) -> None:
    assert Job(tmp_path).run() == 2
    assert list(tmp_path.iterdir()) == []


def test_text_in_a_banner_is_shown_as_it_is(job: Callable[..., Job]) -> None:
    strange = job(notebook("import sys; sys.exit('<b>bold</b> & **star** _x_ `y` [a](b)')"))
    assert strange.run() == 1
    source = strange.result().cells[0].source
    assert not set("*`[") & set(source.partition(">")[2])
    assert "'<b>bold</b> & **star** _x_ `y` [a](b)'" in html.unescape(source)


def test_a_cell_that_may_raise_may_run_out_of_memory(job: Callable[..., Job]) -> None:
    """As with papermill: whatever the cell raises is expected."""
    expected = job(notebook(code("raise MemoryError", "raises-exception"), "print('on')"))
    assert expected.run() == 0
    assert expected.printed() == "on\n"


@pytest.mark.parametrize(
    "source",
    [
        code("import sys; sys.exit(0)"),
        code("import sys; sys.exit()", "raises-exception"),
        code("raise SystemExit(None)"),
        code("exit()"),
    ],
    ids=["sys.exit(0)", "tagged", "None", "exit()"],
)
def test_an_exit_in_the_last_cell_is_success(source: Any, job: Callable[..., Job]) -> None:
    """Every cell ran: neither text nor an empty cell behind it would be sent."""
    done = job(notebook("print('kept')", source, text("end"), "", code("1", "skip-execution")))
    assert done.run() == 0
    outcome, result = done.outcome(), done.result()
    assert (outcome.state, outcome.reason, outcome.message) == ("succeeded", None, None)
    assert outcome.cells == {"done": 2, "total": 2}
    assert [c.metadata.papermill.status for c in result.cells] == ["completed"] * 5


def test_an_error_after_exit_in_the_last_cell(job: Callable[..., Job]) -> None:
    failing = job(notebook("exit()\n1 / 0"))
    assert failing.run() == 1
    assert str(failing.outcome().message).startswith("Cell 1 (In [1]) raised ZeroDivisionError")


@pytest.mark.parametrize(
    ("script", "reason", "message"),
    [
        (
            "raise MemoryError",
            "OutOfMemory",
            "Cell 2 (In [2]) ran out of memory (MemoryError); ",
        ),
        ("raise SystemExit(1)", "CellError", "Cell 2 (In [2]) raised SystemExit: 1."),
        ("input('name?')", "InputRequested", "Cell 2 (In [2]) asked for keyboard input, and a"),
    ],
)
def test_an_error_that_ipython_only_shows(
    script: str, reason: str, message: str, job: Callable[..., Job]
) -> None:
    """The kernel replies that `%run` is ok: later cells run, and the run fails all the same."""
    done = job(notebook(f"%%writefile s.py\n{script}", "%run s.py", "print('next')", text("end")))
    assert done.run() == 1
    outcome, result = done.outcome(), done.result()
    assert (outcome.state, outcome.reason) == ("failed", reason)
    assert str(outcome.message).startswith(message)
    assert outcome.cells == {"done": 3, "total": 3}
    assert len(banner(result)) == 2 and result.cells[3].source == "%run s.py"
    # papermill's own words are those of CellError.
    assert reason == "CellError" or "The run failed here:" in result.cells[2].source
    assert stream(result.cells[4]) == "next\n"
    statuses = [result.cells[n].metadata.papermill.status for n in (1, 3, 4, 5)]
    assert statuses == ["completed", "failed", "completed", "completed"]
    assert [r.state for r in read_receipts(done.attempt() / layout.JOURNAL)] == [
        *("done", "failed", "done")
    ]


def test_a_cell_that_may_raise_may_show_an_error(job: Callable[..., Job]) -> None:
    expected = job(notebook(code("%%capture\n1 / 0", "raises-exception"), "print('on')"))
    assert expected.run() == 0
    assert banner(expected.result()) == []


def test_an_error_that_an_output_widget_captures_does_not_count(job: Callable[..., Job]) -> None:
    """Nor where a widget inside of it has begun and ended."""
    nested = "from ipywidgets import Output\nwith Output():\n    with Output(): pass\n    1 / 0"
    captured = job(notebook(nested))
    assert captured.run() == 0
    assert banner(captured.result()) == []


def test_the_kernel_dies_after_a_cell_that_shows_an_error(job: Callable[..., Job]) -> None:
    dead = job(notebook("%%capture\n1 / 0", "import os; os._exit(3)", "1"))
    assert dead.run() == 4
    assert dead.outcome().reason == "KernelDied"
    statuses = [c.metadata.get("papermill", {}).get("status") for c in dead.result().cells]
    assert statuses == [None, "completed", None, "failed", "pending"]


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
    assert "DiskFull: The disk of the exchange is full;" in job.result().cells[0].source
