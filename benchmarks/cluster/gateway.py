"""The measured process: gateway, feed and reconciler, as the controller has them.

It prints its port, and serves the exchange that its first argument names. The others are the names
of the jobs whose pods run.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tornado.netutil import bind_sockets

from jupyter_to_job.backends.kubernetes import JobPods, KubernetesBackend
from jupyter_to_job.controller.cluster.watches import ALL_NAMESPACES
from jupyter_to_job.controller.feed.feed import GatewayFeed
from jupyter_to_job.controller.gateway import http_server
from jupyter_to_job.controller.handler import GatewayContext
from jupyter_to_job.controller.intake.attempt_budgets import AttemptBudgets
from jupyter_to_job.controller.intake.budgets import Budgets, Caps
from jupyter_to_job.controller.intake.exchange_routes import ExchangeRoutes
from jupyter_to_job.controller.intake.intake import Intake
from jupyter_to_job.controller.reconciling.reconciler import Reconciler
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.flavors import load_catalog
from jupyter_to_job.service.jobs import ServiceContext

from .pretend import PretendCluster, PretendIdentities

THREADS = 8


async def serve(root: Path, running: Sequence[str]) -> None:
    """Serve an exchange for ever."""
    exchange = FileExchange(root, is_private=False)
    pods = JobPods("agent", "https://gateway")
    cluster = PretendCluster(running)
    namespaces = frozenset([ALL_NAMESPACES])
    reconciler = Reconciler(
        cluster,  # type: ignore[arg-type]
        exchange,
        pods,
        namespaces,
        lambda job: feed.mark(job),
    )
    backend = KubernetesBackend(lambda _: None, reconciler.placement_of)
    core = ServiceContext(exchange, backend, load_catalog)
    feed = GatewayFeed(core)

    def on_change(job: str) -> None:
        reconciler.enqueue(job)
        feed.mark(job)

    budgets = Budgets(exchange, Caps())
    intake = Intake(exchange.root, budgets, ThreadPoolExecutor(THREADS), 30.0, 600.0)
    intake.prepare()
    context = GatewayContext(
        core=core,
        identities=PretendIdentities(),  # type: ignore[arg-type]
        exchange_routes=ExchangeRoutes(exchange, AttemptBudgets(exchange, budgets)),
        pool=ThreadPoolExecutor(THREADS),
        feed=feed,
        on_change=on_change,
        intake=intake,
    )
    server = http_server(context)
    sockets = bind_sockets(0, "127.0.0.1")
    server.add_sockets(sockets)
    print(sockets[0].getsockname()[1], flush=True)
    await asyncio.gather(feed.run(), reconciler.run())


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), sys.argv[2:]))
