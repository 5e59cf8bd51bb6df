"""`python -m jupyter_to_job.controller`: gateway and reconciler in one process, one replica."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
from concurrent.futures import ThreadPoolExecutor

from tornado.httpserver import HTTPServer

from ..backends.kubernetes import JobPods, KubernetesBackend
from ..exchange import FileExchange
from ..flavors import CatalogFile
from ..service.jobs import ServiceContext
from ..wiring import Settings
from .cluster import Cluster
from .exchange_routes import ExchangeRoutes
from .gateway import MAX_BODY, GatewayContext, application
from .identity import Identities
from .reconciler import Reconciler

GATEWAY_THREADS = 16


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(prog="jupyter_to_job.controller", description=__doc__)
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--kubeconfig", help="default: the pod's own service account")
    options = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    settings = Settings.load()
    if not (settings.agent_image and settings.gateway_url):
        parser.error("JUPYTER_TO_JOB_AGENT_IMAGE and JUPYTER_TO_JOB_GATEWAY_URL must be set")
    asyncio.run(serve(settings, options.port, options.kubeconfig))


async def serve(settings: Settings, port: int, kubeconfig: str | None) -> None:
    """Run gateway and reconciler on this event loop."""
    exchange = FileExchange(settings.exchange_root(), is_private=False)
    exchange.prepare()
    exchange.sweep()
    loop = asyncio.get_running_loop()
    async with Cluster.connect(kubeconfig) as cluster:
        pod_settings = JobPods(settings.agent_image, settings.gateway_url)
        reconciler = Reconciler(cluster, exchange, pod_settings)

        def enqueue(job: str) -> None:
            loop.call_soon_threadsafe(reconciler.enqueue, job)

        backend = KubernetesBackend(enqueue, reconciler.pod_of)
        catalog = CatalogFile(settings.catalog_path)
        catalog.log_problem()
        context = GatewayContext(
            core=ServiceContext(exchange, backend, catalog.current, settings.output_limit()),
            identities=Identities(
                cluster,
                settings.owner_rule,
                frozenset(filter(None, settings.namespaces.split(","))),
                reconciler.job_uid,
                reconciler.pod_of,
            ),
            exchange_routes=ExchangeRoutes(exchange),
            pool=ThreadPoolExecutor(GATEWAY_THREADS, thread_name_prefix="gateway"),
            on_change=reconciler.enqueue,
        )
        server = HTTPServer(application(context), max_body_size=MAX_BODY, max_buffer_size=MAX_BODY)
        server.listen(port)
        task = asyncio.create_task(reconciler.run())
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            server.stop()


if __name__ == "__main__":
    main()
