"""What receipts say of the GPU beside what torch and the driver say, and what sampling costs."""

from __future__ import annotations

import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from job_runner.host.gpu_devices import VISIBLE_DEVICES
from job_runner.resources import gpu

from ..runner.measure import Run
from .card import GIB, Card, held_by_another
from .product import Product, cells_of
from .report import Report, gib, percent
from .runner import run_cells

_IMPORT = """\
import os, subprocess, sys, time, torch

def hold(gibibytes):
    return torch.empty(gibibytes << 30, dtype=torch.uint8, device='cuda')

a = torch.randn(8192, 8192, device='cuda', dtype=torch.bfloat16)
def multiply(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        a @ a
        torch.cuda.synchronize()
"""
_CARD = """
def on_card():
    query = ['nvidia-smi', '--query-compute-apps=pid,used_memory', '--format=csv,noheader,nounits']
    rows = subprocess.check_output(query, text=True).splitlines()
    return dict(map(int, row.split(',')) for row in rows)
"""
_LOOKS = "print(on_card().get(os.getpid(), 0) << 20, torch.cuda.memory_reserved())"
_CHILDREN = """\
import subprocess, sys
code = '''import time, torch
kept = torch.empty(4 << 30, dtype=torch.uint8, device='cuda')
time.sleep(6)'''
command = [sys.executable, '-c', code]
children = [subprocess.Popen(command, start_new_session=own) for own in (False, True)]
assert [child.wait() for child in children] == [0, 0]
"""
_SPIKE = """\
x = hold(10)
multiply(0.5)
del x
torch.cuda.empty_cache()
"""
_SPIKES = 8
_NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc")
_QUIET_SECONDS = 20


def check(product: Product, card: Card, report: Report) -> None:
    report.title("What the receipt says (usage of the job)")
    with held_by_another(8 * GIB):
        _steady(product, card, report)
        _namespace(product, card, report)
    _spikes(product, report)
    job = product.execute("children", _CHILDREN)
    report.row("two processes with 4 GiB each, one in its own session",
               gib(job["usage"]["gpu_memory_peak"]),
               good=8 * GIB < (job["usage"]["gpu_memory_peak"] or 0) < 12 * GIB)  # fmt: skip
    pinned = "x = torch.ones(4 << 30, dtype=torch.uint8, pin_memory=True); time.sleep(2)"
    usage = product.execute("pinned", _IMPORT, pinned)["usage"]
    report.row("the job's own memory with 4 GiB of pinned memory", gib(usage["memory_peak"]))
    _runner_cost(product, card, report)


def _steady(product: Product, card: Card, report: Report) -> None:
    """20 GiB and ten seconds of products, while a process that is no job holds 8 GiB."""
    busy = "x = hold(20)\nopen('busy', 'w').write(f'{os.getpid()}\\n')\nmultiply(10)"
    job = product.submit("steady", _IMPORT + _CARD, busy, _LOOKS)
    kernel = int(product.wait_for("busy"))
    cost = _sample_cost(card, kernel)
    ended = product.wait(job)[0]
    cells = product.cells(ended)
    on_card, reserved = map(int, cells[2][0].split())
    usage: dict[str, Any] = ended["usage"]
    report.row("20 GiB held: nvidia-smi, torch's reserved",
               f"{gib(on_card)}, {gib(reserved)}")  # fmt: skip
    report.row("receipt: memory at most", gib(usage["gpu_memory_peak"]),
               good=abs((usage["gpu_memory_peak"] or 0) - on_card) < GIB // 8)  # fmt: skip
    report.row("receipt: utilisation of the cell of 10 s, peak of the run",
               f"{percent(cells[1][1]['gpu_utilisation'])}, "
               f"{percent(usage['gpu_utilisation_peak'])}",
               good=(cells[1][1]["gpu_utilisation"] or 0) > 0.7)  # fmt: skip
    report.row("a sample of the busy GPU: wall, processor (ms, median)", cost)


def _sample_cost(card: Card, kernel: int) -> str:
    read = gpu.open_nvml({VISIBLE_DEVICES: card.uuid})
    assert read is not None
    walls, processor = [], []
    for _ in range(40):
        began, cpu = time.perf_counter(), time.thread_time()
        read([kernel])
        walls.append((time.perf_counter() - began) * 1e3)
        processor.append((time.thread_time() - cpu) * 1e3)
        time.sleep(0.1)
    return (
        f"{statistics.median(walls):.2f}, {statistics.median(processor):.2f}; "
        f"at most {max(walls):.2f}, {max(processor):.2f}"
    )


def _namespace(product: Product, card: Card, report: Report) -> None:
    """The same in a namespace of process ids, as in a container, beside the 8 GiB of another."""
    if os.getuid() != 0:
        report.row("in a namespace of process ids", "needs root")
        return
    sources = [_IMPORT + _CARD, "x = hold(4)\nmultiply(4)\nprint(os.getpid(), on_card())"]
    variables = {**product.environment, VISIBLE_DEVICES: card.uuid}
    ended = run_cells(product.root / "namespace", sources, variables, _NAMESPACE)
    cells = cells_of(ended.result)
    peaks = [receipt["gpu_memory_peak"] or 0 for _, receipt in cells]
    report.row("4 GiB in a namespace of process ids: receipt per cell",
               ", ".join(map(gib, peaks)), good=4 * GIB < max(peaks) < 6 * GIB)  # fmt: skip
    report.row("its process id, and nvidia-smi's list (MiB) there", cells[-1][0].strip())


def _spikes(product: Product, report: Report) -> None:
    cells = [_IMPORT + "multiply(0.1)"]
    for number in range(_SPIKES):
        cells += [f"time.sleep({1 + number / 7:.2f})", _SPIKE]
    job = product.execute("spikes", *cells)
    receipts = [receipt for _, receipt in product.cells(job)][2::2]
    seen = sum((receipt["gpu_memory_peak"] or 0) > 10 * GIB for receipt in receipts)
    busy = sum((receipt["gpu_utilisation"] or 0) > 0 for receipt in receipts)
    wall = statistics.median(receipt["wall"] for receipt in receipts)
    report.row(f"{_SPIKES} spikes of 10 GiB and {wall:.2f} s: seen in the cell's receipt",
               f"memory {seen}, utilisation {busy}", good=seen == busy == _SPIKES)  # fmt: skip
    report.row("the same run: memory at most, utilisation",
               f"{gib(job['usage']['gpu_memory_peak'])}, "
               f"{percent(job['usage']['gpu_utilisation_peak'])}",
               good=(job["usage"]["gpu_memory_peak"] or 0) > 10 * GIB)  # fmt: skip


def _runner_cost(product: Product, card: Card, report: Report) -> None:
    """Two runners at once whose kernels sleep, one of which sees the GPU."""
    cells = [f"import time; time.sleep({_QUIET_SECONDS})"]
    seen = {"with": card.uuid, "without": ""}

    def run(name: str) -> Run:
        variables = {**product.environment, VISIBLE_DEVICES: seen[name]}
        return run_cells(product.root / name, cells, variables).run

    with ThreadPoolExecutor() as pool:
        runs = list(pool.map(run, seen))
    seconds = ", ".join(f"{each.cpu:.2f} s" for each in runs)
    report.row(f"runner's processor time in {_QUIET_SECONDS} s, with a GPU and without", seconds)
    megabytes = ", ".join(f"{each.memory >> 20} MB" for each in runs)
    report.row("runner's own memory at most, with a GPU and without", megabytes)
