"""What a long queue costs: a submission and a page behind many jobs, beside those behind a few."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from job_runner.protocol import layout
from job_runner.protocol.times import now
from jupyter_to_job.domain.names import job_name
from jupyter_to_job.exchange import FileExchange

from ..runner.measure import notebook
from . import targets
from .client import Client
from .event_loop import QueueServer
from .job_list import INDEX_DELAY
from .ours import API
from .report import MS, Report, Row
from .server import NOTEBOOK

FEW, MANY = 5, 1500
ENDED = 60
"""Jobs that ended before: a page is full in either case."""
QUIET = 10.0
"""Seconds for which nobody asks for anything."""
_SLEEPING = "sleeps.ipynb"
_CATALOG = """apiVersion: jupyter-to-job.io/v1
default: {flavor: small, device: cpu}
devices:
  cpu: {title: CPU}
flavors:
  small: {cpu: 1, memory: 2Gi, devices: [cpu]}
"""


def measure_queue(server: QueueServer, tries: int, report: Report) -> None:
    """Measure with a few jobs in the queue, fill it, and measure again."""
    server.catalog.write_text(_CATALOG)
    (server.workspace / _SLEEPING).write_text(notebook(["import time; time.sleep(3600)"]))
    with server.running() as client:
        delivered = server.submit(client)
        server.wait_until_ended(delivered)
        server.wait_until_idle()
    server.add_jobs(ENDED, delivered)
    time.sleep(INDEX_DELAY)
    with server.running() as client:
        client.request("POST", f"{API}/jobs", {"notebook": _SLEEPING})
        sample = server.submit(client)
        _fill(server, sample, FEW)
        posts, pages = _time(server, client, tries)
        share = _share_of_core(server)
        _fill(server, sample, MANY)
        many_posts, many_pages = _time(server, client, tries)
        many_share = _share_of_core(server)
    report.section(f"behind {MANY:,} queued jobs / behind {FEW}, {tries} tries")
    report.add(Row("POST, answered", many_posts, posts, targets.QUEUE, unit=MS))
    report.add(Row("a page of 50", many_pages, pages, targets.QUEUE, unit=MS))
    name, percent = "a quiet server, of a core", (0.01, "%")
    report.add(Row(name, [many_share], [share], limit=targets.QUIET, unit=percent))


def _fill(server: QueueServer, sample: str, jobs: int) -> None:
    """Have so many jobs in the queue, copies of a waiting one."""
    exchange = FileExchange(server.exchange)
    request = exchange.request(sample)
    snapshot = (exchange.directory(sample) / layout.SNAPSHOT).read_bytes()

    def copy(_: int) -> None:
        name = job_name(NOTEBOOK, owner=request.owner)
        exchange.create(replace(request, name=name, submitted=now(), key=None), snapshot)

    with ThreadPoolExecutor(8) as pool:  # it waits for the disk, mostly
        list(pool.map(copy, range(len(exchange.jobs()), ENDED + jobs)))
    time.sleep(2 * INDEX_DELAY)  # the dispatcher reads them


def _share_of_core(server: QueueServer) -> float:
    time.sleep(INDEX_DELAY)
    before = server.cpu_seconds()
    time.sleep(QUIET)
    return (server.cpu_seconds() - before) / QUIET


def _time(server: QueueServer, client: Client, tries: int) -> tuple[list[float], list[float]]:
    """Return the seconds of some submissions, and of some pages."""
    posts, pages = list[float](), list[float]()
    for number in range(tries + 1):
        for times, ask in ((posts, server.submit), (pages, server.list_jobs)):
            ask(client)
            if number:  # the first does not count
                times.append(client.elapsed)
            time.sleep(0.2)
    return posts, pages
