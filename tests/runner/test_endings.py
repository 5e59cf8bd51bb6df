"""Ends that need help to come about: failing disks, kernels that never answer, odd deaths."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from job_runner.protocol import layout

from .jobs import BOUND, Job, banner, changed_runner, make_job, notebook, stream, until

Make = Callable[..., Job]
ODD_SYSTEM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int fdatasync(int fd) {
    const char *sign = getenv("SYNC_FAILS_IF"), *number = getenv("SYNC_FAILS_WITH");
    if (sign && number && access(sign, F_OK) == 0) { errno = atoi(number); return -1; }
    return ((int (*)(int)) dlsym(RTLD_NEXT, "fdatasync"))(fd);
}
int clock_gettime(clockid_t clock, struct timespec *moment) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *)) dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(clock, moment);
    const char *sign = getenv("CLOCK_IS_SET_BACK_IF");
    if (clock == CLOCK_REALTIME && sign && access(sign, F_OK) == 0) moment->tv_sec -= 3600;
    return status;
}
"""
ENDLESS = notebook("print('kept')", "import time\nwhile True: print('more'); time.sleep(0.2)")


@pytest.fixture(scope="module")
def odd_system(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A library that fails to sync, and sets the clock back, once certain files are there."""
    folder = tmp_path_factory.mktemp("library")
    if shutil.which("gcc") is None:
        pytest.skip("gcc is missing: it makes the library that fails to sync")
    (folder / "odd.c").write_text(ODD_SYSTEM)
    command = ["gcc", "-shared", "-fPIC", "-o", "odd.so", "odd.c", "-ldl"]
    subprocess.run(command, cwd=folder, check=True)
    return str(folder / "odd.so")


def run_changed(changed: Job, change: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a job by the runner as it is, but for what `change`, in Python, replaces in it."""
    return subprocess.run(
        [*changed_runner(change), "run", str(changed.directory)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )


@pytest.mark.parametrize(("number", "reason"), [(28, "DiskFull"), (5, "BackendError")])
def test_a_disk_that_cannot_keep_what_was_written_ends_the_run(
    job: Make, odd_system: str, tmp_path: Path, number: int, reason: str
) -> None:
    sign = tmp_path / "now"
    endless = job(ENDLESS)
    process = endless.start(
        LD_PRELOAD=odd_system, SYNC_FAILS_IF=str(sign), SYNC_FAILS_WITH=str(number)
    )
    until(lambda: endless.attempt().exists() and "more" in endless.printed(), "output")
    sign.touch()
    assert process.wait(timeout=BOUND) == 74
    sign.unlink()
    # The last sync failed as well: the outcome is left to who can write again.
    assert endless.finish() == 0
    assert (endless.outcome().reason, endless.outcome().exit_code) == (reason, 74)
    assert endless.printed().startswith("kept\nmore\n")
    assert reason in banner(endless.result())[0]


@pytest.mark.parametrize("killed", [False, True])
def test_a_clock_that_is_set_back_makes_no_run_shorter_than_nothing(
    job: Make, odd_system: str, tmp_path: Path, killed: bool
) -> None:
    sign = tmp_path / "now"
    last = "while True: time.sleep(0.1)" if killed else "pass"
    ran = job(notebook(f"import pathlib, time; pathlib.Path({str(sign)!r}).touch()", last))

    def started(cell: int) -> bool:
        return ran.attempt().exists() and any(
            record["k"] == "cell_start" and record["i"] == cell for record in ran.records()
        )

    process = ran.start(LD_PRELOAD=odd_system, CLOCK_IS_SET_BACK_IF=str(sign))
    if killed:
        until(lambda: started(1), "the second cell")
        process.kill()
        process.wait()
        assert ran.finish(LD_PRELOAD=odd_system, CLOCK_IS_SET_BACK_IF=str(sign)) == 0
    else:
        assert process.wait(timeout=BOUND) == 0
    times = [record["t"] for record in ran.records()]
    assert times == sorted(times)
    assert (ran.outcome().started or "") <= ran.outcome().finished
    notes = [ran.result().metadata, *(cell.metadata for cell in ran.result().cells)]
    assert all((note["papermill"]["duration"] or 0) >= 0 for note in notes if "papermill" in note)


KERNELS = {
    "exits": ("raise SystemExit('cannot start: no licence')", "NoKernel", "no licence"),
    "silent": ("import time; time.sleep(600)", "NoKernel", "no answer within 2 s"),
    "crashes": ("import os; os.abort()", "NoKernel", "it ended at once"),
    "killed": ("import os; os.kill(os.getpid(), 9)", "KernelDied", "SIGKILL"),
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_that_does_not_start(job: Make, tmp_path: Path, name: str) -> None:
    source, reason, said = KERNELS[name]
    folder = tmp_path / "data" / "kernels" / "odd"
    folder.mkdir(parents=True)
    argv = [sys.executable, "-c", source, "{connection_file}"]
    spec = {"argv": argv, "display_name": "Odd", "language": "python"}
    (folder / "kernel.json").write_text(json.dumps(spec))
    odd = job(notebook("print('no')", kernel="odd"))
    impatient = "import job_runner.kernel.client as k; k.START_TIMEOUT = 2.0"
    # The others end by themselves: on a busy machine Python takes its time to start.
    change = impatient if name == "silent" else ""
    ran = run_changed(odd, change, JUPYTER_PATH=str(tmp_path / "data"))
    code = 3 if reason == "NoKernel" else 4
    assert ran.returncode == code
    outcome = odd.outcome()
    assert (outcome.reason, outcome.exit_code) == (reason, code)
    assert said in str(outcome.message) and ("'odd'" in str(outcome.message)) == (code == 3)
    assert reason in banner(odd.result())[0]
    assert not Path(odd.records()[0]["sockets"]).exists()


ENDS = {
    "getpass": ("import getpass; getpass.getpass()", "InputRequested", 1),
    "abort": ("import os; os.abort()", "KernelDied", 4),
    "dies between cells": (
        "import os, threading, time\n"
        "threading.Thread(target=lambda: (time.sleep(0.3), os._exit(1))).start()",
        "KernelDied",
        4,
    ),
    "syntax": ("def", "CellError", 1),
    "an error that cannot be shown": (
        "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
        "CellError",
        1,
    ),
    "shows what is nested without end": (
        "import sys; sys.setrecursionlimit(20_000); deep = []\n"
        "for _ in range(5000): deep = [deep]\n"
        "display({'application/json': deep, 'text/plain': 'deep'}, raw=True)",
        None,
        0,
    ),
    "dies at shutdown": (
        "import atexit, os, signal\natexit.register(lambda: os.kill(os.getpid(), 9))",
        None,
        0,
    ),
}


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Job, int]]:
    folder = tmp_path_factory.mktemp("exchange")
    jobs = {}
    for number, (name, (source, reason, _)) in enumerate(ENDS.items()):
        later = ["import time; time.sleep(30)"] if reason else []
        jobs[name] = make_job(folder / str(number), notebook("print('kept')", source, *later))
    with ThreadPoolExecutor(2) as pool:  # most of a run is waiting for a kernel
        codes = pool.map(lambda job: job.run(), jobs.values())
    return {name: (job, code) for (name, job), code in zip(jobs.items(), codes, strict=True)}


@pytest.mark.parametrize("name", ENDS)
def test_how_it_ended(name: str, ends: dict[str, tuple[Job, int]]) -> None:
    job, exit_code = ends[name]
    _, reason, expected = ENDS[name]
    outcome = job.outcome()
    assert (outcome.reason, outcome.exit_code, exit_code) == (reason, expected, expected)
    assert (outcome.state == "succeeded") is (reason is None)
    result = job.result()
    assert "kept\n" in "".join(stream(c) for c in result.cells if c.cell_type == "code")
    assert not list(job.attempt().glob(".*"))


def test_a_kernel_that_does_not_exit_is_killed_and_that_is_told(job: Make) -> None:
    waits = job(notebook("import atexit, time; _ = atexit.register(time.sleep, 600)"))
    assert waits.run() == 0
    outcome = waits.outcome()
    assert outcome.state == "succeeded"
    assert outcome.message == (
        "Its kernel did not exit after the last cell, and was killed: what it still wrote may be "
        "missing."
    )


def test_nothing_is_told_of_another_kernel_that_does_not_exit(job: Make, tmp_path: Path) -> None:
    """One that is built with ipykernel hangs at times, and loses nothing."""
    folder = tmp_path / "data" / "kernels" / "built"
    folder.mkdir(parents=True)
    program = tmp_path / "built.py"
    program.write_text("from ipykernel.kernelapp import launch_new_instance as main; main()")
    argv = [sys.executable, str(program), "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Built", "language": "python"}
    (folder / "kernel.json").write_text(json.dumps(spec))
    waits = job(
        notebook("import atexit, time; _ = atexit.register(time.sleep, 600)", kernel="built")
    )
    assert waits.run(JUPYTER_PATH=str(tmp_path / "data")) == 0
    assert (waits.outcome().state, waits.outcome().message) == ("succeeded", None)


def test_what_is_nested_without_end_is_told_not_kept(ends: dict[str, tuple[Job, int]]) -> None:
    job, _ = ends["shows what is nested without end"]
    assert "more than 200 levels" in stream(job.result().cells[1])


def test_a_folder_of_sockets_is_not_left_when_the_first_record_fails(job: Make) -> None:
    """A journal that cannot be written to at all: a file stands where the segment would."""
    blocked = job(notebook("1"))
    full = (
        "import job_runner.attempt.run as a\n"
        "from job_runner.protocol.journal.journal import JournalWriter\n"
        "class Full(JournalWriter):\n"
        "    def append(self, record): raise OSError(28, 'No space left on device')\n"
        "a.JournalWriter = Full"
    )
    temporary = blocked.directory.parent / "tmp"
    temporary.mkdir()
    ran = run_changed(blocked, full, TMPDIR=str(temporary))
    assert ran.returncode == 74
    assert list(temporary.iterdir()) == []
    assert not (blocked.attempt() / layout.OUTCOME).exists()
    assert blocked.finish() == 0
    assert blocked.outcome().reason == "Lost"


def test_a_disk_without_room_for_the_result(job: Make) -> None:
    """Both ways to write it fail: who can write again finishes the attempt."""
    full = job(notebook("print('kept')"))
    no_result = (
        "import job_runner.protocol.documents as d\n"
        "write = d.write_chunks\n"
        "def fail(path, *rest, **options):\n"
        "    if path.name == 'result.ipynb': raise OSError(28, 'No space left on device')\n"
        "    write(path, *rest, **options)\n"
        "d.write_chunks = fail"
    )
    ran = run_changed(full, no_result)
    assert (ran.returncode, "No space left" in ran.stderr) == (74, True), ran.stderr
    assert full.finish() == 0
    assert (full.outcome().state, full.printed()) == ("succeeded", "kept\n")


def test_files_that_come_and_go_as_an_isolated_run_ends(job: Make) -> None:
    """Threads of the kernel go on until it exits: their temporary files are nobody's loss."""
    source = (
        "import os, threading\n"
        "def work(number):\n"
        "    while True:\n"
        "        open(f'tmp{number}', 'w').close(); os.unlink(f'tmp{number}')\n"
        "for number in range(3):\n"
        "    threading.Thread(target=work, args=[number], daemon=True).start()\n"
        "os.mkfifo('pipe'); open('made', 'w').write('whole')"
    )
    busy = job(notebook(source), isolated=True)
    assert busy.run() == 0
    made = {record.path: record.size for record in busy.outcome().artifacts or ()}
    assert busy.outcome().state == "succeeded" and made["folder/made"] == 5
