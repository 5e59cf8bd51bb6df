"""For how long our server answers nobody while it does something large.

Jobs wait in a queue behind one that sleeps, so the server alone is at work.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from job_runner.protocol import layout
from job_runner.protocol.journal.journal import JournalWriter
from jupyter_to_job.exchange import FileExchange

from ..runner.measure import notebook
from . import targets
from .client import Client, RequestFailed
from .job_list import INDEX_DELAY
from .latency import measured_latency
from .ours import API, OurServer
from .report import MS, Report, Row

RESULT_SIZE = 100_000_000
QUEUED = 500
FLAVORS = 1250
"""As many as a catalog of 1 MiB holds."""


@dataclass(frozen=True)
class Sizes:
    """Bytes of a notebook and of an input, the jobs in the list, and how often each is tried."""

    notebook: int
    inputs: int
    jobs: int
    rounds: int


class QueueServer(OurServer):
    """Our server, where one job of the smallest flavor runs at a time."""

    @property
    def catalog(self) -> Path:
        """Return the file that the server has its flavors from."""
        return self.root / "flavors.yaml"

    @property
    def environment(self) -> dict[str, str]:
        return {
            **super().environment,
            "JUPYTER_TO_JOB_CAPACITY": "cpu=1,memory=2Gi",
            "JUPYTER_TO_JOB_CATALOG": str(self.catalog),
        }


def measure_event_loop(server: QueueServer, sizes: Sizes, report: Report) -> None:
    """Measure one thing after the other, and print for how long others had no answer."""
    server.catalog.write_text(_catalog(0))
    with server.running() as client:
        sample = server.submit(client)
        server.wait_until_ended(sample)
        server.wait_until_idle()
    server.add_jobs(sizes.jobs, sample)
    _enlarge(FileExchange(server.exchange).directory(sample), sizes.notebook)
    time.sleep(INDEX_DELAY)
    report.section(f"the longest time without an answer, {sizes.rounds} rounds")
    with server.running() as client:
        _submit(client, _write(server, "sleeps.ipynb", ["import time; time.sleep(3600)"]))
        for name, action in _actions(server, client, sample, sizes).items():
            action()  # what is imported late, and read for the first time
            longest = []
            for _ in range(sizes.rounds):
                with measured_latency(server.client()) as latencies:
                    action()
                longest.append(max(latencies))
            report.add(Row(name, longest, limit=targets.LOOP_LATENCY, unit=MS))


def _actions(
    server: QueueServer, client: Client, sample: str, sizes: Sizes
) -> dict[str, Callable[[], object]]:
    megabytes = sizes.notebook // 1_000_000
    cells = [f"# {'x' * 1000}"] * (sizes.notebook // 1000)
    on_disk = {"notebook": _write(server, "large.ipynb", cells)}
    opened = json.dumps({"notebook": "open.ipynb", "content": json.loads(notebook(cells))}).encode()
    inputs = {"notebook": "sleeps.ipynb", "inputs": [_write_input(server, sizes.inputs)]}
    queued = [_submit(client, "sleeps.ipynb") for _ in range(QUEUED)]

    def submit_inputs() -> None:
        job = client.request("POST", f"{API}/jobs", inputs)["name"]
        client.request("DELETE", f"{API}/jobs/{job}")

    def read_journal() -> None:
        offset = 0
        for _ in range(20):
            offset = client.request("GET", f"{API}/jobs/{sample}/journal?offset={offset}")["next"]
        client.request("GET", f"{API}/jobs/{sample}/logs?offset=-1000000")

    def look_at_queue() -> None:
        client.request("GET", f"{API}/jobs/{queued[-1]}")
        client.request("GET", f"{API}/jobs?limit={QUEUED}&state=queued")
        time.sleep(1)  # the feed of events looks at all of them meanwhile

    def change_catalog() -> None:
        server.catalog.write_text(_catalog(time.monotonic_ns()))
        client.request("GET", f"{API}/flavors")

    return {
        f"{sizes.inputs // 1_000_000} MB of inputs": submit_inputs,
        "  that are withdrawn": lambda: _withdraw(server, client, inputs),
        f"a notebook of {megabytes} MB on disk": lambda: client.request(
            "POST", f"{API}/jobs", on_disk
        ),
        "  its preflight": lambda: client.request("POST", f"{API}/preflight", on_disk),
        f"an open notebook of {megabytes} MB": lambda: client.send("POST", f"{API}/jobs", opened),
        f"a result of {RESULT_SIZE // 1_000_000} MB": lambda: client.send(
            "GET", f"{API}/jobs/{sample}/notebook"
        ),
        f"a page of {sizes.jobs:,} jobs": lambda: server.list_jobs(client),
        f"{QUEUED} jobs in the queue": look_at_queue,
        "20 pages of a journal": read_journal,
        "a catalog of 1 MiB that changes": change_catalog,
    }


def _submit(client: Client, path: str) -> str:
    return str(client.request("POST", f"{API}/jobs", {"notebook": path})["name"])


def _withdraw(server: QueueServer, client: Client, body: dict[str, Any]) -> None:
    key, other = str(uuid.uuid4()), server.client()
    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(client.request, "POST", f"{API}/jobs", body, Idempotency_Key=key)
        time.sleep(0.05)  # somewhere in the copy
        other.request("DELETE", f"{API}/submissions/{key}")
        if not isinstance(sending.exception(), RequestFailed):
            raise RuntimeError("the submission was not withdrawn")
    other.close()


def _write(server: QueueServer, name: str, cells: list[str]) -> str:
    (server.workspace / name).write_text(notebook(cells))
    return name


def _write_input(server: QueueServer, size: int) -> str:
    with (server.workspace / "large.bin").open("wb") as file:
        for _ in range(size // 1_000_000):
            file.write(os.urandom(1_000_000))
    return "large.bin"


def _enlarge(directory: Path, journal_size: int) -> None:
    """Give a job a result of `RESULT_SIZE` bytes, and a journal of about as many as told."""
    attempt = layout.attempt_dir(directory, 1)
    (attempt / layout.RESULT).write_bytes(b'{"cells": "' + b"x" * RESULT_SIZE + b'"}')
    shutil.rmtree(attempt / layout.JOURNAL)
    writer = JournalWriter(attempt / layout.JOURNAL)
    for number in range(journal_size // 200):
        text = {"output_type": "stream", "name": "stdout", "text": f"{number}" + "x" * 100}
        writer.append({"t": 1.0, "k": "output", "i": 0, "output": text})
    writer.close()


def _catalog(number: int) -> str:
    """Return a catalog of about 1 MiB; another number makes it another catalog."""
    lines = ["apiVersion: jupyter-to-job.io/v1", "default: {flavor: small, device: cpu}"]
    lines += ["devices:", "  cpu: {title: CPU}", "flavors:"]
    fields = f"title: Title {number}, description: {'d' * 700}, cpu: 1, memory: 2Gi, devices: [cpu]"
    lines += [f"  f{flavor}: {{{fields}}}" for flavor in range(FLAVORS)]
    return "\n".join([*lines, f"  small: {{{fields}}}"])
