"""The receipt: what each cell and the whole run used, in the notebook, and at what price."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from job_runner.resources.monitor import Monitor
from job_runner.resources.process_tree import cpu_seconds, read_kernel, total
from job_runner.resources.usage import Reading, Usage

from .jobs import BOUND, SEEN, Job, changed_runner, code, make_job, notebook, until
from .test_gpu import driver as driver  # a fixture
from .test_gpu import wait_for_looks

MIB = 1 << 20
BUSY = "import time; end = time.process_time() + {0}\nwhile time.process_time() < end: pass"
CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY.format(0.4)!r}])"
LASTING = """\
import os, time
child = subprocess.Popen([sys.executable, '-c', 'print(1, flush=True); import time; \
x = bytearray(b"x") * (300 << 20); end = time.process_time() + 0.4\\n\
while time.process_time() < end: pass\\nprint(2, flush=True); input()'],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.read(4)
while not os.path.exists('seen'): time.sleep(0.02)
"""
SEEN_SIZE = 320 * MIB
"""What the cell `lasting` has, with its child, and no other cell."""
CELLS = {
    "tiny": "x = 1",
    "idle": "import time; time.sleep(0.2)",
    "busy": BUSY.format(0.3),
    "spike": "y = bytearray(b'x') * (200 << 20); del y",
    "after": "x = 2",
    "child": CHILD,
    "lasting": LASTING,
    "ended": "child.communicate(b'1')",
    "raises": "1 / 0",
}
WATCHED = 4.0
"""Seconds for which the price of watching is measured."""
KEYS = {"wall", "cpu", "memory_peak", "gpu_utilisation", "gpu_memory_peak"}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Its snapshot is the result of an earlier run, with that one's receipts."""
    cells = [code(source) for source in CELLS.values()]
    for cell in cells:
        cell.metadata["jupyter_to_job"] = {"wall": 1e9, "odd": 1}
    never = code("never = 'runs'")
    never.metadata["jupyter_to_job"] = {"wall": 1e9, "odd": 1}
    folder = tmp_path_factory.mktemp("exchange")
    made = make_job(folder / "job", notebook(*cells, never))
    seen = SEEN.format(size=SEEN_SIZE, path=str(folder / "seen"))
    assert made.start(runner=changed_runner(seen)).wait(timeout=BOUND) == 1
    return made


@pytest.fixture
def receipts(ran: Job) -> dict[str, Any]:
    result = ran.result()
    cells = [cell for cell in result.cells if cell.cell_type == "code"]
    return {
        name: cell.metadata.get("jupyter_to_job")
        for name, cell in zip([*CELLS, "never"], cells, strict=True)
    }


def test_every_cell_has_one_however_short(receipts: dict[str, Any]) -> None:
    assert receipts.pop("never") is None
    assert all(set(receipt) == KEYS for receipt in receipts.values())
    assert all(0 < receipt["wall"] < BOUND for receipt in receipts.values())
    assert all(receipt["memory_peak"] > 10 * MIB for receipt in receipts.values())
    assert 0 < receipts["tiny"]["cpu"] < receipts["busy"]["cpu"]
    assert receipts["raises"]["cpu"] > 0
    assert {receipt["gpu_memory_peak"] for receipt in receipts.values()} == {None}
    assert {receipt["gpu_utilisation"] for receipt in receipts.values()} == {None}


def test_cpu_is_that_of_the_cell(receipts: dict[str, Any]) -> None:
    assert receipts["idle"]["wall"] >= 0.2 and receipts["idle"]["cpu"] < receipts["busy"]["cpu"] / 2
    assert 0.29 <= receipts["busy"]["cpu"] < 0.6
    assert receipts["busy"]["wall"] >= 0.29


def test_children_count_once(receipts: dict[str, Any]) -> None:
    """Those that ended within the cell, and those that went on; none twice."""
    assert 0.4 <= receipts["child"]["cpu"] < 0.8
    assert 0.4 <= receipts["lasting"]["cpu"] < 0.9
    assert receipts["ended"]["cpu"] < 0.3


def test_memory_is_the_most_that_the_cell_had(receipts: dict[str, Any]) -> None:
    """A moment's, too, between two looks; and that of other processes, where one was taken."""
    assert receipts["spike"]["memory_peak"] > 200 * MIB
    assert receipts["after"]["memory_peak"] < 150 * MIB
    assert receipts["lasting"]["memory_peak"] > 300 * MIB


@pytest.mark.parametrize(
    ("last", "reading", "peak"),
    [
        (Reading(0, 50, 60, 10), Reading(0, 50, 260, 10), 250),  # a moment's
        (Reading(0, 50, 60, 10), Reading(0, 50, 1050, 1000), 50),  # a file was mapped
        (Reading(0, 50, 960, 900), Reading(0, 50, 1060, 10), 160),  # and is not any more
        (Reading(0, 50, 1060, 10), Reading(0, 60, 1060, 10), 60),  # it was more before
        (Reading(0, 50, 60), Reading(0, 50, 260), 260),  # a system that does not tell files apart
    ],
)
def test_a_mapped_file_is_no_peak(last: Reading, reading: Reading, peak: int) -> None:
    readings = [last, last, reading, reading]
    usage = Usage()
    usage.begin(lambda: readings.pop(0))
    usage.begin_cell()
    assert usage.end_cell()["memory_peak"] == peak


def test_the_run_has_one_that_adds_up(ran: Job, receipts: dict[str, Any]) -> None:
    usage = ran.outcome().usage
    assert ran.result().metadata["jupyter_to_job"]["usage"] == usage
    del receipts["never"]
    assert usage["wall"] >= sum(receipt["wall"] for receipt in receipts.values())
    assert usage["cpu_seconds"] >= sum(receipt["cpu"] for receipt in receipts.values()) - 0.1
    assert usage["memory_peak"] >= 300 * MIB
    assert 0 < usage["cpu_mean"] <= usage["cpu_peak"]


def test_a_run_that_was_killed_keeps_those_of_its_cells(job: Callable[..., Job]) -> None:
    killed = job(notebook("x = 1", "import time; time.sleep(60)"))
    process = killed.start()
    until(
        lambda: (
            killed.attempt().exists()
            and {"usage", "cell_end"} <= {r["k"] for r in killed.records()}
        ),
        "a receipt of the run and one of a cell in the journal",
    )
    process.kill()
    process.wait(timeout=BOUND)
    assert killed.finish() == 0
    result = killed.result()
    assert result.metadata["jupyter_to_job"]["usage"] == killed.outcome().usage
    assert killed.outcome().usage["wall"] > 0
    cells = [cell for cell in result.cells if cell.cell_type == "code"]
    assert [set(c.metadata.get("jupyter_to_job", {})) for c in cells] == [KEYS, set()]


def test_a_run_without_a_kernel_has_nothing_to_tell(job: Callable[..., Job]) -> None:
    none = job(notebook("x = 1", kernel="no-such-kernel"))
    assert none.run() == 3
    assert set(none.outcome().usage.values()) == {None}


def test_what_a_cell_used_of_a_gpu(job: Callable[..., Job], driver: str, tmp_path: Path) -> None:
    """Where it lasted long enough to be looked at."""
    looks = tmp_path / "looks"
    used = job(notebook(wait_for_looks(2, looks)), env={"CUDA_VISIBLE_DEVICES": "1"})
    assert used.run(LD_LIBRARY_PATH=driver, NVML_LOOKS=str(looks)) == 0
    (cell,) = used.result().cells
    receipt = cell.metadata["jupyter_to_job"]
    assert (receipt["gpu_utilisation"], receipt["gpu_memory_peak"]) == (0.5, 2 << 30)


@pytest.fixture
def idle() -> Iterator[int]:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield child.pid
    child.kill()
    child.wait()


def test_a_cell_costs_the_loop_next_to_nothing(idle: int) -> None:
    usage = Usage()
    usage.begin(partial(read_kernel, idle, ()))
    began = time.thread_time()
    for _ in range(100):
        total(cpu_seconds, [idle] * 100)
    reading_a_hundred = (time.thread_time() - began) / 100
    began = time.thread_time()
    for _ in range(1000):
        usage.begin_cell()
        usage.end_cell()
    assert (time.thread_time() - began) / 1000 < reading_a_hundred / 5


@pytest.mark.parametrize("processes", [1, 30])
def test_watching_takes_less_than_a_hundredth_of_a_core(processes: int) -> None:
    children = [f"{sys.executable} -c 'import time; time.sleep(60)' &"] * (processes - 1)
    script = "\n".join([*children, "echo ready; sleep 60"])
    tree = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True)
    assert tree.stdout is not None
    tree.stdout.readline()

    async def watch() -> float:
        with Monitor(tree.pid, None, Usage(), os.environ):
            (watcher,) = (t for t in threading.enumerate() if t.name == "_watch_processes")
            clock = time.pthread_getcpuclockid(watcher.ident or 0)
            before = time.clock_gettime(clock)
            await asyncio.sleep(WATCHED)
            return time.clock_gettime(clock) - before

    try:
        spent = asyncio.run(watch())
    finally:
        os.killpg(tree.pid, signal.SIGKILL)
        tree.wait()
    assert spent < 0.02 * WATCHED  # twice: a busy machine's caches are cold


def test_a_kernel_that_is_gone_is_no_error(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    usage = Usage()
    usage.begin(partial(read_kernel, child.pid, ()))
    usage.begin_cell()
    child.wait()
    assert until(lambda: read_kernel(child.pid, ()) is None, "the end")
    receipt = usage.end_cell()
    assert receipt["wall"] > 0
    usage.close()
    assert usage.to_json()["wall"] > 0
