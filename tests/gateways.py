"""A real gateway on a real port, over an exchange in files, without a cluster behind it."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tornado.testing import bind_unused_port

from jupyter_to_job.backends.memory import MemoryBackend
from jupyter_to_job.controller.callers.identity import AgentPod, DevPod, Identities, Identity
from jupyter_to_job.controller.feed.gateway_feed import GatewayFeed
from jupyter_to_job.controller.gateway import READER_LIMITS, http_server
from jupyter_to_job.controller.handler import GatewayContext
from jupyter_to_job.controller.intake.attempt_budgets import AttemptBudgets
from jupyter_to_job.controller.intake.budgets import Budgets, Caps
from jupyter_to_job.controller.intake.exchange_routes import ExchangeRoutes
from jupyter_to_job.controller.intake.intake import Intake
from jupyter_to_job.controller.pod_planner import PodPlanner
from jupyter_to_job.domain.errors import Refused
from jupyter_to_job.domain.state import Placement
from jupyter_to_job.exchange import FileExchange, Request
from jupyter_to_job.flavors import SHIPPED, load_catalog
from jupyter_to_job.service.jobs import ServiceContext

NOBODY = "nobody"
"""A token that is refused."""


class KnownPods(Identities):
    """Who is calling, without a cluster to ask.

    A token is the name of a dev pod's owner, or `JOB/POD` for the agent in a pod of a job.
    """

    def __init__(self) -> None:
        """Ask nobody."""

    async def authenticate(self, token: str) -> Identity:
        if token == NOBODY:
            raise Refused("This token is not accepted.")
        job, _, pod = token.partition("/")
        return AgentPod(job, pod) if pod else DevPod(token, {"namespace": "dev"})


class MarkingBackend(MemoryBackend):
    """Runs jobs at once, and tells the feed of them as the controller's backend does."""

    def __init__(self, exchange: FileExchange) -> None:
        super().__init__(exchange)
        self.mark: Callable[[str], object] = str

    def notify(self, *jobs: str) -> None:
        super().notify(*jobs)
        for job in jobs:
            self.mark(job)


class FullCluster(MarkingBackend):
    """A cluster that has no room: each job waits, with what its scheduler says."""

    name = "kubernetes"
    has_queue = False
    says = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."

    def notify(self, *jobs: str) -> None:
        for job in jobs:
            self.mark(job)

    def queue_status(self, waiting: Mapping[str, Request]) -> Mapping[str, Placement]:
        return dict.fromkeys(waiting, Placement(reason="Unschedulable", message=self.says))


@contextmanager
def context_of(
    exchange: FileExchange,
    caps: Caps = Caps(reserve=0),  # noqa: B008 - it never changes
    idle_timeout: float = 30.0,
    timeout: float = 600.0,
    identities: Identities | None = None,
    catalog: Path = SHIPPED,
    planner: PodPlanner | None = None,
    backend: type[MarkingBackend] = MarkingBackend,
    has_hooks: bool = False,
) -> Iterator[GatewayContext]:
    """Yield what the handlers of a gateway share."""
    budgets = Budgets(exchange, caps)
    core = ServiceContext(
        exchange,
        backend(exchange),
        partial(load_catalog, catalog),
        limits=READER_LIMITS,
        admit_job=budgets.admit_job,
        has_hooks=lambda: has_hooks,
    )
    feed = GatewayFeed(core)
    with ThreadPoolExecutor(4) as quick, ThreadPoolExecutor(8) as bulk:
        yield GatewayContext(
            core,
            identities or KnownPods(),
            ExchangeRoutes(exchange, AttemptBudgets(exchange, budgets)),
            quick,
            feed,
            feed.mark,
            Intake(exchange.root, budgets, bulk, idle_timeout, timeout),
            planner or PodPlanner(),
        )


@contextmanager
def serve(
    exchange: FileExchange,
    identities: Identities,
    catalog: Path = SHIPPED,
    planner: PodPlanner | None = None,
) -> Iterator[str]:
    """Serve jobs that only print; yield the gateway's URL."""
    made = context_of(exchange, identities=identities, catalog=catalog, planner=planner)
    with made as context, serving(context) as url:
        yield url


@contextmanager
def serving(context: GatewayContext, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve in a thread; yield the URL."""
    sockets, port = bind_unused_port()
    loop = asyncio.new_event_loop()
    started = threading.Event()

    def mark(job: str) -> None:
        loop.call_soon_threadsafe(context.feed.mark, job)

    async def begin() -> asyncio.Task[None]:
        http_server(context, tls).add_socket(sockets)
        started.set()
        return asyncio.create_task(context.feed.run())

    def run() -> None:
        asyncio.set_event_loop(loop)
        following = loop.run_until_complete(begin())
        loop.run_forever()
        following.cancel()

    if isinstance(context.core.backend, MarkingBackend):
        context.core.backend.mark = mark

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{port}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


@contextmanager
def own_process(exchange: FileExchange, **options: float) -> Iterator[tuple[str, int]]:
    """Serve in a process of its own; yield its URL and its process id."""
    command = [sys.executable, "-m", "tests.gateways", str(exchange.root), json.dumps(options)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        yield process.stdout.readline().decode().strip(), process.pid
        process.stdin.close()


def _main(root: str, options: str) -> None:
    """Serve an exchange until stdin ends."""
    exchange = FileExchange(Path(root))
    with context_of(exchange, **json.loads(options)) as context, serving(context) as url:
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    _main(*sys.argv[1:])
