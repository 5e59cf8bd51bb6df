"""The memory limit of a request, held on the kernel's whole process tree; and the receipt."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from job_runner.diagnosis.cell_place import CellPlace
from job_runner.diagnosis.endings import memory_limit_exceeded
from job_runner.resources import process_tree

from .jobs import BOUND, SEEN, Job, banner, changed_runner, make_job, notebook, stream, until

MIB = 1 << 20
FILL = """\
def fill(size):
    "Touch every page: zeros that nobody wrote to are not there."
    return bytearray(b'x') * size
"""
CHILD = """\
import subprocess, sys
source = 'x = bytearray(b"x") * (400 << 20); import time; time.sleep(60)'
"""
ORPHAN = """\
import time
subprocess.run(['sh', '-c', '"$0" -c "$1" &', sys.executable, source]); time.sleep(60)
"""
SHARING = """\
import multiprocessing, os, time
from multiprocessing import shared_memory
whole = fill(100 << 20)
shared = shared_memory.SharedMemory(create=True, size=50 << 20)
shared.buf[:] = bytes(50 << 20)
def work():
    sum(shared.buf[::4096]), sum(whole[::4096])
    time.sleep(1.5)
workers = [multiprocessing.get_context('fork').Process(target=work) for _ in range(4)]
[w.start() for w in workers]; [w.join() for w in workers]
shared.close(); shared.unlink()
print('kept')
"""
MAPPING = """\
import mmap, os, pathlib, sys, time
with open('large', 'wb') as large: large.truncate(400 << 20)
with open('large', 'rb') as large: mapped = mmap.mmap(large.fileno(), 0, prot=mmap.PROT_READ)
def touch(): return sum(mapped[::4096])
workers = []
for _ in range({workers}):
    reader, writer = os.pipe()
    workers.append(os.fork())
    if not workers[-1]:
        touch(); os.write(writer, b'x'); time.sleep(60); os._exit(0)
    os.read(reader, 1)
touch(); pathlib.Path('mapped').touch()
while not os.path.exists('seen'): time.sleep(0.02)
[os.kill(pid, 9) for pid in workers]
print('kept')
"""
COUNTING = """\
import os, pathlib
from job_runner.resources.monitor import Monitor
add_tree, samples = Monitor._add_tree, []
def add_and_count(monitor, tree, moment):
    add_tree(monitor, tree, moment)
    if tree.exact and os.path.exists({folder!r} + '/mapped'): samples.append(tree)
    if len(samples) == 12: pathlib.Path({folder!r}, 'seen').touch()
Monitor._add_tree = add_and_count
"""
"""For `changed_runner`: `seen` comes twelve samples after the file was mapped. A run that is over
its limit is killed meanwhile."""
UP_TO = """\
import time
def used():
    fields = dict(line.split(':') for line in open('/proc/self/status'))
    return sum(int(fields[name].split()[0]) << 10 for name in ('RssAnon', 'RssShmem'))
held = []
while used() < {size}: held.append(fill(1 << 20))
print('kept'); time.sleep(60)
"""


OVER = {
    "at once": "import time\nx = [fill(50 << 20) for _ in range(10)]; time.sleep(60)",
    "step by step": "held = []\nwhile True: held.append(fill(1 << 20))",
    "in a child": f"{CHILD}subprocess.run([sys.executable, '-c', source])",
    "in an orphan": f"{CHILD}{ORPHAN}",
}


@pytest.fixture(scope="module")
def over(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Job, int]]:
    folder = tmp_path_factory.mktemp("exchange")
    jobs = [
        make_job(
            folder / str(number),
            notebook(FILL, f"print('kept')\n{source}", "print('no')"),
            memory_limit=300 * MIB,
        )
        for number, source in enumerate(OVER.values())
    ]
    with ThreadPoolExecutor(2) as pool:  # most of a run is waiting for a kernel
        return dict(zip(OVER, zip(jobs, pool.map(Job.run, jobs), strict=True), strict=True))


@pytest.mark.parametrize("name", OVER)
def test_over_the_limit(name: str, over: dict[str, tuple[Job, int]]) -> None:
    hungry, exit_code = over[name]
    outcome = hungry.outcome()
    assert (outcome.state, outcome.reason, exit_code) == ("failed", "OutOfMemory", 4)
    assert outcome.exit_code == 4
    said = re.match(r"The run used (\d+(\.\d)?) of 300 MiB in cell 2;", str(outcome.message))
    assert said is not None and float(said[1]) > 300
    assert outcome.usage["memory_peak"] > 300 * MIB
    assert hungry.printed() == "kept\n"
    result = hungry.result()
    assert f"OutOfMemory: The run used {said[1]} of 300 MiB in cell 2" in banner(result)[0]
    assert stream(result.cells[3]) == "kept\n"
    until(lambda: not Path(f"/proc/{hungry.kernel_pid()}").exists(), "the end of the kernel")


def test_shared_pages_count_once(job: Callable[..., Job]) -> None:
    """Workers that forked off, and shared memory: the resident sizes add up to over 700 MiB."""
    sharing = job(notebook(FILL, SHARING), memory_limit=350 * MIB)
    assert sharing.run() == 0, sharing.outcome().message
    assert sharing.printed() == "kept\n"
    assert 150 * MIB < sharing.outcome().usage["memory_peak"] < 350 * MIB


@pytest.mark.parametrize("workers", [0, 2])
def test_a_mapped_file_is_no_used_memory(
    workers: int, job: Callable[..., Job], tmp_path: Path
) -> None:
    """The system takes its pages back when it needs them, as it does in a control group."""
    mapping = job(notebook(MAPPING.format(workers=workers)), memory_limit=300 * MIB)
    runner = changed_runner(COUNTING.format(folder=str(tmp_path)))
    assert mapping.start(runner=runner).wait(timeout=BOUND) == 0, mapping.outcome().message
    assert mapping.printed() == "kept\n"
    assert 20 * MIB < mapping.outcome().usage["memory_peak"] < 200 * MIB


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be in many groups")
def test_nor_is_it_that_of_a_user_in_many_groups(job: Callable[..., Job], tmp_path: Path) -> None:
    """As directories of a company have them: in /proc they stand before the sizes of memory."""
    mapping = job(notebook(MAPPING.format(workers=0)), memory_limit=300 * MIB)
    groups = f"import os; os.setgroups(range({2**32 - 500}, {2**32 - 100}))"
    runner = changed_runner(f"{groups}\n{COUNTING.format(folder=str(tmp_path))}")
    assert mapping.start(runner=runner).wait(timeout=BOUND) == 0, mapping.outcome().message
    assert 20 * MIB < mapping.outcome().usage["memory_peak"] < 200 * MIB


def test_killed_near_the_limit_is_out_of_memory(job: Callable[..., Job], tmp_path: Path) -> None:
    limit, seen = 300 * MIB, tmp_path / "seen"
    near = job(notebook(FILL, UP_TO.format(size=limit * 95 // 100)), memory_limit=limit)
    told = SEEN.format(size=limit * 9 // 10, path=str(seen))
    process = near.start(runner=changed_runner(told))
    until(lambda: seen.exists() and "kept" in near.printed(), "a sample near the limit")
    os.kill(near.kernel_pid(), signal.SIGKILL)
    assert process.wait(timeout=BOUND) == 4
    assert near.outcome().reason == "OutOfMemory"
    assert near.printed() == "kept\n"


def test_a_killed_run_has_its_receipt(job: Callable[..., Job]) -> None:
    """And where there is no limit, none is held."""
    busy = job(notebook("x = bytearray(b'x') * (400 << 20)\nwhile True: pass"))
    process = busy.start()

    def is_recorded() -> bool:
        records = busy.records() if busy.attempt().exists() else []
        return any(r["k"] == "usage" and r["memory_peak"] > 400 * MIB for r in records)

    until(is_recorded, "a receipt in the journal")
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=BOUND)
    assert busy.finish() == 0
    usage = busy.outcome().usage
    assert busy.outcome().reason == "Lost"
    assert usage["memory_peak"] > 400 * MIB and usage["cpu_peak"] > 0
    assert usage["gpu_memory_peak"] is None


@pytest.mark.parametrize(
    ("used", "limit", "text"),
    [
        (23 * (1 << 30) // 10, 2 << 30, "The run used 2.3 of 2 GiB in cell 7;"),
        ((2 << 30) + (1 << 24), 2 << 30, "The run used 2.02 of 2 GiB in cell 7;"),
        (3 << 30, 512 * MIB, "The run used 3072 of 512 MiB in cell 7;"),
        ((2 << 30) + 1, 2 << 30, "The run used 2 of 2 GiB in cell 7;"),
    ],
)
def test_the_sentence(used: int, limit: int, text: str) -> None:
    assert str(memory_limit_exceeded(used, limit, CellPlace(8, 7)).message).startswith(text)


def test_a_tree_without_the_kernels_list_of_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host whose kernel does not list children, and processes that end while they are read."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        seen = []
        for listed in (True, False):
            monkeypatch.setattr(process_tree, "_HAS_CHILDREN", listed)
            until(lambda: process_tree.measure(os.getpid(), exact=bool), "a tree")
            seen.append(process_tree.measure(os.getpid(), exact=lambda _: True))
        assert all(t is not None and child.pid in t.pids and t.exact for t in seen)
    finally:
        child.kill()
        child.wait()
    assert process_tree.measure(child.pid, exact=lambda _: True) is None


def test_looking_costs_next_to_nothing() -> None:
    """No more than a few processes' own figures: no map of their memory is read for it."""
    process_tree.measure(os.getpid(), exact=lambda _: False)
    began = time.thread_time()
    for _ in range(100):
        Path("/proc/self/smaps").read_bytes()
    between = time.thread_time()
    for _ in range(100):
        process_tree.measure(os.getpid(), exact=lambda _: False)
    assert time.thread_time() - between < 2 * (between - began)
