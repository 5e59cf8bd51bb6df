"""What our commands say of the GPU, what jobs see of it, and that it goes to one at a time."""

from __future__ import annotations

import json
import subprocess
import time
from datetime import datetime

from jupyter_to_job.backends.local.gpus import DRIVER_TIMEOUT, Probe

from .card import Card
from .product import Product
from .report import Report

ON_CPU = ("-f", "small", "-d", "cpu")
_SEES = """\
import importlib, json, os

def look(module, count):
    try:
        return count(importlib.import_module(module))
    except ImportError:
        return "not installed"
    except Exception as error:
        return f"0 ({type(error).__name__})"

def uuids(torch):
    count = torch.cuda.device_count()
    return [str(torch.cuda.get_device_properties(n).uuid) for n in range(count)]

print(json.dumps({
    "CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES"),
    "torch": look("torch", uuids),
    "cupy": look("cupy", lambda cupy: cupy.cuda.runtime.getDeviceCount()),
    "numba": look("numba.cuda", lambda cuda: len(cuda.gpus) if cuda.is_available() else 0),
    "jax": look("jax", lambda jax: sum(d.platform == "gpu" for d in jax.devices())),
}))
"""
_WAITS = """\
import time
while not os.path.exists('go'):
    time.sleep(0.1)
"""


def check(product: Product, card: Card, report: Report) -> None:
    report.title("What is found, and who sees it")
    began = time.perf_counter()
    devices = Probe().devices(DRIVER_TIMEOUT)
    report.row("the driver's answer to the local backend", devices,
               good=(devices or {}).get("nvidia.com/gpu", ())[:1] == (card.uuid,))  # fmt: skip
    report.row("seconds that it took", f"{time.perf_counter() - began:.2f}")
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout.strip()
    report.row("nvidia-smi -L", listed, good=card.uuid in listed)
    for command, word in (("doctor", "nvidia.com/gpu"), ("flavors", "NVIDIA GPU")):
        lines = [line for line in product.call(command).splitlines() if word in line]
        report.row(command, lines[:1], good=bool(lines))
    first, second = product.submit("first", _SEES, _WAITS), product.submit("second", _SEES)
    beside = product.submit("beside", _SEES, on=ON_CPU)
    position = product.show(second)["position"]
    report.row("the second of two jobs: its place in the queue", position, good=position == 1)
    (product.folder / "go").touch()
    jobs = product.wait(first, second, beside)
    for job in jobs:
        report.row(job["name"], job["state"], good=job["state"] == "succeeded")
    with_gpu, _, without = (json.loads(product.cells(job)[0][0].splitlines()[-1]) for job in jobs)
    report.row("a job with the GPU sees", with_gpu,
               good=with_gpu["CUDA_VISIBLE_DEVICES"] == card.uuid
               and [f"GPU-{uuid}" for uuid in with_gpu["torch"]] == [card.uuid])  # fmt: skip
    report.row("a job without sees", without,
               good=without["CUDA_VISIBLE_DEVICES"] == "" and not without["torch"])  # fmt: skip
    gap = _moment(jobs[1]["started"]) - _moment(jobs[0]["finished"])
    report.row("from the first one's end to the second's start", f"{gap:.2f} s", good=gap >= 0)


def _moment(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
