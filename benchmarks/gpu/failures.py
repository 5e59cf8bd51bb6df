"""What a job is told whose GPU is full, or whose kernel on the GPU went wrong.

One at a time asks for far more than any GPU has. Then operations of many libraries meet a GPU that
torch has filled, and at last the GPU is full before the job begins.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from job_runner.diagnosis.cell_place import CellPlace
from job_runner.diagnosis.diagnosis import Diagnosis
from job_runner.diagnosis.error_patterns import CellFailure
from job_runner.host.gpu_devices import VISIBLE_DEVICES
from job_runner.resources.host_memory import MemoryStatus

from .card import Card, held_by_another
from .product import Product, cells_of
from .report import Report
from .runner import run_cells

_TOO_MUCH = "import torch\ntorch.empty(1 << 40, dtype=torch.uint8, device='cuda')"
_HANDLER = """\
import torch
try:
    torch.empty(1 << 40, dtype=torch.uint8, device='cuda')
except RuntimeError:
    raise ValueError('training failed')
"""
_POOL = f"""\
import joblib
def work(number):
    exec({_TOO_MUCH!r})
joblib.Parallel(2)(joblib.delayed(work)(number) for number in range(2))
"""
_ILLEGAL = """\
import cupy, torch
torch.zeros(1, device='cuda')
code = 'extern "C" __global__ void f(long *p) { p[1L << 40] = 1; }'
cupy.RawKernel(code, 'f')((1,), (1,), (cupy.zeros(1, 'i8'),))
"""
_ASSERT = """\
import torch
torch.zeros(4, device='cuda')[torch.tensor([9], device='cuda')]
torch.cuda.synchronize()
"""
_FULL, _HOST, _ERROR = "GpuOutOfMemory", "OutOfMemory", "CellError"
_CELLS = {
    "torch": (_FULL, _TOO_MUCH),
    "torch, and another exception in the handler": (_FULL, _HANDLER),
    "torch in a process of joblib": (_FULL, _POOL),
    "CuPy": (_FULL, "import cupy\ncupy.empty(1 << 40, 'u1')"),
    "numba": (_FULL, "from numba import cuda\ncuda.device_array(1 << 40, 'u1')"),
    "JAX": (
        _FULL,
        "import jax.numpy as jnp\njnp.zeros((1 << 20, 1 << 20), 'u1').block_until_ready()",
    ),
    "cuda.core": (
        _FULL,
        "from cuda.core import Device\nd = Device()\nd.set_current()\n"
        "d.allocate(1 << 40, stream=d.default_stream)",
    ),
    "NumPy: memory of the host": (_HOST, "import numpy\nnumpy.ones(1 << 48)"),
    "an illegal address, met by CuPy": (_ERROR, _ILLEGAL + "cupy.cuda.Device().synchronize()"),
    "an illegal address, met by torch": (_ERROR, _ILLEGAL + "torch.cuda.synchronize()"),
    "torch, an assertion on the device": (_ERROR, _ASSERT),
    "torch, a GPU that is not there": (_ERROR, "import torch\ntorch.zeros(1, device='cuda:7')"),
}
_ON_A_FULL_GPU = {
    "torch": (_FULL, "import torch\ntorch.zeros(1, device='cuda')"),
    "CuPy": (_FULL, "import cupy\ncupy.zeros(1)"),
    "numba": (_FULL, "from numba import cuda\ncuda.device_array(1)"),
    # It says no more than that it found no GPU.
    "JAX": (_ERROR, "import jax.numpy as jnp\njnp.zeros(1).block_until_ready()"),
}
_FILL = """\
import json, torch
x = torch.randn(1, 64, 512, 512, device='cuda')
a = torch.randn(2048, 2048, device='cuda')
kernel = torch.nn.Conv2d(64, 64, 3, device='cuda')
import cupy, cupyx
c = cupy.ones((512, 512))
spare = cupy.empty(256 << 20, 'u1')
kept = []
for size in (1 << 30, 1 << 26, 1 << 21):
    try:
        while True: kept.append(torch.empty(size, dtype=torch.uint8, device='cuda'))
    except torch.OutOfMemoryError: pass
try:
    while True: kept.append(cupy.cuda.runtime.malloc(1 << 20))
except Exception: pass
del kept[0], spare  # the allocators keep them: only the libraries' own workspaces are short
found = {}
def attempt(name, work):
    try:
        work()
        torch.cuda.synchronize()
        found[name] = None
    except BaseException as error:
        found[name] = [type(error).__name__, str(error)]
attempt('torch matmul', lambda: a @ a)
attempt('torch conv2d', lambda: kernel(x))
attempt('torch fft', lambda: torch.fft.fft2(a))
attempt('torch svd', lambda: torch.linalg.svd(a))
attempt('torch sparse', lambda: a.to_sparse_csr() @ a)
attempt('torch randn', lambda: torch.randn(1 << 20, device='cuda'))
attempt('CuPy matmul', lambda: c @ c)
attempt('CuPy fft', lambda: cupy.fft.fft2(c))
attempt('CuPy random', lambda: cupy.random.rand(1 << 20))
attempt('CuPy svd', lambda: cupy.linalg.svd(c))
print(json.dumps(found))
"""


def check(product: Product, card: Card, report: Report) -> None:
    report.title("What a failed job is told")
    variables = {**product.environment, VISIBLE_DEVICES: card.uuid,
                 "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}  # fmt: skip
    folders = product.root / "failures"
    _ends(folders, _CELLS, variables, report)
    card.wait_until_free()
    report.title("Operations on a GPU that the run itself has filled")
    _filled(folders / "filled", variables, report)
    card.wait_until_free()
    report.title("A GPU that another program has filled")
    with held_by_another(-(100 << 20)):
        _ends(folders / "full", _ON_A_FULL_GPU, variables, report)
    card.wait_until_free()


def _ends(
    folders: Path, cells: dict[str, tuple[str, str]], variables: dict[str, str], report: Report
) -> None:
    """Run each cell by the runner, several at once, and show what the outcome says."""

    def run(name: str) -> dict[str, Any]:
        return run_cells(folders / name, [cells[name][1]], variables).outcome

    with ThreadPoolExecutor(6) as pool:
        for (name, (reason, _)), outcome in zip(cells.items(), pool.map(run, cells), strict=True):
            message = str(outcome["message"])
            is_missing = "No module named" in message
            text = "not installed" if is_missing else f"{outcome['reason']}: {message}"
            report.row(name, text, good=is_missing or outcome["reason"] == reason)


def _filled(folder: Path, variables: dict[str, str], report: Report) -> None:
    """Show what the diagnosis makes of the exceptions that a cell with a full GPU has caught."""
    ended = run_cells(folder, [_FILL], variables)
    if ended.outcome["reason"]:
        report.row("the run", ended.outcome["message"], good=False)
        return
    errors: dict[str, list[str] | None] = json.loads(cells_of(ended.result)[0][0].splitlines()[-1])
    diagnosis = Diagnosis(lambda: MemoryStatus(0, 1), {}, variables)
    for name, error in errors.items():
        if error is None:
            report.row(name, "worked")
            continue
        end = diagnosis.cell_failed(CellFailure(error[0], error[1], CellPlace(0, 1)))
        good = end.reason == _FULL or bool(end.advice)
        report.row(name, f"{end.reason}: {end.message}", good=good)
