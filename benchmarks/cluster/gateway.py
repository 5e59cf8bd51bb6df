"""The measured process: gateway, feed, reconciler and probes, as the controller has them.

It prints its two ports once both are open: the gateway's, and the one for operations.
"""

from __future__ import annotations

import argparse
import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tornado.netutil import bind_sockets

from jupyter_to_job.backends.kubernetes import JobPods, KubernetesBackend
from jupyter_to_job.controller.cluster.watches import ALL_NAMESPACES
from jupyter_to_job.controller.feed.gateway_feed import GatewayFeed
from jupyter_to_job.controller.gateway import http_server
from jupyter_to_job.controller.handler import GatewayContext
from jupyter_to_job.controller.intake.attempt_budgets import AttemptBudgets
from jupyter_to_job.controller.intake.budgets import Budgets, Caps
from jupyter_to_job.controller.intake.exchange_routes import ExchangeRoutes
from jupyter_to_job.controller.intake.intake import Intake
from jupyter_to_job.controller.job_tracker import JobTracker
from jupyter_to_job.controller.metrics import Metrics
from jupyter_to_job.controller.operations import operations_server
from jupyter_to_job.controller.readiness import Readiness
from jupyter_to_job.controller.reconciling.reconciler import Reconciler
from jupyter_to_job.exchange import FileExchange
from jupyter_to_job.flavors import load_catalog
from jupyter_to_job.service.jobs import ServiceContext

from .pretend import PretendCluster, PretendIdentities

THREADS = 8


def main() -> None:
    """Serve until the process is killed."""
    parser = argparse.ArgumentParser(prog="benchmarks.cluster.gateway", description=__doc__)
    parser.add_argument("exchange", type=Path)
    parser.add_argument("running", nargs="*", help="names of the jobs whose pods run")
    parser.add_argument("--ports", type=int, nargs=2, default=(0, 0), help="0: any free one")
    asyncio.run(serve(parser.parse_args()))


async def serve(options: argparse.Namespace) -> None:
    """Serve an exchange for ever."""
    metrics = Metrics()
    probes = operations_server(metrics, Readiness(metrics))
    sockets = [bind_sockets(port, "127.0.0.1") for port in options.ports]
    probes.add_sockets(sockets[1])
    exchange = FileExchange(options.exchange, is_private=False)
    pods = JobPods("agent", "https://gateway")
    cluster = PretendCluster(options.running)
    namespaces = frozenset([ALL_NAMESPACES])
    reconciler = Reconciler(
        cluster,  # type: ignore[arg-type]
        exchange,
        pods,
        namespaces,
        lambda job: feed.mark(job),
        tracker=JobTracker(metrics),
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
    server.add_sockets(sockets[0])
    print(*(opened[0].getsockname()[1] for opened in sockets), flush=True)
    await asyncio.gather(feed.run(), reconciler.run())


if __name__ == "__main__":
    main()
