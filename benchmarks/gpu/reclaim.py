"""How soon the GPU is free after a job, however the job ends, and whether a process is left."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable

import psutil

from .card import Card, FreeWatch
from .product import Product
from .report import Report

_HOLD = """\
import os, subprocess, sys, torch
kept = torch.empty(40 << 30, dtype=torch.uint8, device='cuda')
a = torch.randn(8192, 8192, device='cuda', dtype=torch.bfloat16)
"""
_CHILD = """\
code = '''import sys, time, torch
kept = torch.empty(10 << 30, dtype=torch.uint8, device='cuda')
print('held', flush=True)
time.sleep(600)'''
child = subprocess.Popen(
    [sys.executable, '-c', code], stdout=subprocess.PIPE, start_new_session={own}
)
assert child.stdout.readline() == b'held\\n'
"""
_HOLD_WITH_CHILD = _HOLD + _CHILD.format(own=False)
_SAYS = "open('pid', 'w').write(f'{os.getpid()}\\n')\n"
_FOREVER = f"{_SAYS}while True:\n    for _ in range(100): a @ a\n    torch.cuda.synchronize()"
_SPINS = """\
import cupy
loop = 'long long begin = clock64(); while (clock64() - begin < 1L << 37);'
spins = cupy.RawKernel('extern "C" __global__ void f() {' + loop + '}', 'f')
spins.compile()
"""
_ENDLESS = f"{_SAYS}spins((1,), (1,), ())\ncupy.cuda.Device().synchronize()"
_TAKES = """\
import torch
amount = int(torch.cuda.get_device_properties(0).total_memory * 0.95)
taken = torch.empty(amount, dtype=torch.uint8, device='cuda')
"""

End = Callable[[Product, str, int], None]


def _by_itself(_product: Product, _job: str, _kernel: int) -> None:
    """The notebook comes to its end."""


def _cancel(product: Product, job: str, _kernel: int) -> None:
    product.call("cancel", job)


def _kill_kernel(_product: Product, _job: str, kernel: int) -> None:
    os.kill(kernel, signal.SIGKILL)


def _kill_runner(product: Product, job: str, _kernel: int) -> None:
    os.kill(product.runner(job), signal.SIGKILL)


_ENDINGS: dict[str, tuple[tuple[str, ...], End, str]] = {
    "succeeds": ((_HOLD + _SAYS,), _by_itself, "succeeded"),
    "raises": ((_HOLD + _SAYS, "1 / 0"), _by_itself, "CellError"),
    "cancelled amid a product": ((_HOLD, _FOREVER), _cancel, "cancelled"),
    "cancelled amid a CUDA kernel of a minute": ((_HOLD + _SPINS, _ENDLESS), _cancel, "cancelled"),
    "SIGKILL to the kernel": ((_HOLD, _FOREVER), _kill_kernel, "KernelDied"),
    "SIGKILL to the runner": ((_HOLD, _FOREVER), _kill_runner, "Lost"),
    "with a child, succeeds": ((_HOLD_WITH_CHILD + _SAYS,), _by_itself, "succeeded"),
    "with a child, cancelled": ((_HOLD_WITH_CHILD, _FOREVER), _cancel, "cancelled"),
    "with a child, SIGKILL to the runner": ((_HOLD_WITH_CHILD, _FOREVER), _kill_runner, "Lost"),
}


def check(product: Product, card: Card, report: Report) -> None:
    report.title("How soon the GPU is free after the job's end (seconds)")
    for number, (name, (cells, end, expected)) in enumerate(_ENDINGS.items()):
        job = product.submit(f"end-{number}", *cells)
        kernel = int(product.wait_for("pid"))
        with FreeWatch(card) as watch:
            began = time.time()
            end(product, job, kernel)
            ended = product.wait(job)[0]
            done = time.time()
            is_free = card.wait_until_free()
            time.sleep(0.2)
        left = product.processes()
        state = ended["reason"] or ended["state"]
        since = "never" if watch.since is None else f"{watch.since - began:.2f}"
        figures = f"free {since}, job ended {done - began:.2f}, {len(left)} processes left"
        report.row(name, f"{state}: {figures}", good=is_free and not left and state == expected)
        _end_all(left)
    _next_in_line(product, report)
    _own_session(product, card, report)


def _next_in_line(product: Product, report: Report) -> None:
    """A job waits that takes nearly all of the GPU, while one with a child is cancelled."""
    first = product.submit("holds", _HOLD_WITH_CHILD, _FOREVER)
    product.wait_for("pid")
    second = product.submit("takes", _TAKES)
    product.call("cancel", first)
    job = product.wait(second)[0]
    state = job["message"] or job["state"]
    report.row("the next job takes 95 % of the GPU", state, good=state == "succeeded")


def _own_session(product: Product, card: Card, report: Report) -> None:
    """A process that left the kernel's session is nobody's: it lives on, as the pages say."""
    product.execute("own", _HOLD + _CHILD.format(own=True))
    time.sleep(1)
    left = product.processes()
    held = sum(card.processes().values()) >> 30
    report.row("a child in a session of its own, after success",
               f"{len(left)} processes left, {held} GiB held")  # fmt: skip
    _end_all(left)
    card.wait_until_free()


def _end_all(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()
