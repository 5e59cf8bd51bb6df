"""`python -m jupyter_to_job.controller`: gateway and reconciler in one process, one replica."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from ..backends.kubernetes import JobPods, KubernetesBackend
from ..backends.kubernetes.manifest import sample_template
from ..backends.kubernetes.pod_patch import PodPatchFile
from ..backends.kubernetes.records import Manifest
from ..domain.errors import BadInput
from ..domain.quantities import parse_duration
from ..exchange import FileExchange
from ..exchange.retention import Policy
from ..flavors import CatalogFile
from ..service.jobs import ServiceContext
from ..wiring import Settings
from .callers.identity import Identities
from .callers.tenants import Tenants
from .cluster.cluster import Cluster, require_pod_template
from .cluster.node_watch import NodeWatch
from .couriers.couriers import Couriers
from .couriers.manifest import CourierPods
from .feed.feed import GatewayFeed
from .gateway import READER_LIMITS, http_server
from .handler import GatewayContext
from .intake.attempt_budgets import AttemptBudgets
from .intake.budgets import Budgets, Caps
from .intake.exchange_routes import ExchangeRoutes
from .intake.housekeeping import Housekeeping
from .intake.intake import Intake
from .one_writer import only_writer
from .pod_planner import PodPlanner
from .preflight.cluster_checks import ClusterChecks
from .recent_events import RecentEvents
from .reconciling.reconciler import Reconciler
from .reconciling.wait_limits import WaitLimits

QUICK_THREADS = 8
BULK_THREADS = 16


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(prog="jupyter_to_job.controller", description=__doc__)
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--kubeconfig", help="default: the pod's own service account")
    options = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    try:
        settings = Settings.load()
        tenants = Tenants.from_settings(settings)
    except BadInput as error:
        parser.error(str(error))
    if not (settings.agent_image and settings.gateway_url):
        parser.error("JUPYTER_TO_JOB_AGENT_IMAGE and JUPYTER_TO_JOB_GATEWAY_URL must be set")
    try:
        wait_limits = WaitLimits.parse(settings.start_limits)
    except BadInput as error:
        parser.error(f"JUPYTER_TO_JOB_START_LIMITS: {error}")
    pods = JobPods(settings.agent_image, settings.gateway_url, files_timeout=wait_limits.agent)
    try:
        pod_patch = patch_in_force(settings, pods)
    except BadInput as error:
        parser.error(str(error))
    rules = Rules(tenants, wait_limits, pods, pod_patch)
    asyncio.run(serve(settings, rules, options.port, options.kubeconfig))


@dataclass(frozen=True)
class Rules:
    """What the settings say of dev pods and of the pods of their jobs."""

    tenants: Tenants
    wait_limits: WaitLimits
    pods: JobPods
    pod_patch: Callable[[], Manifest]


def patch_in_force(settings: Settings, pods: JobPods) -> Callable[[], Manifest]:
    """Return what returns the administrator's patch. Raises BadInput if it is wrong."""
    if not settings.pod_patch:
        return dict
    file = PodPatchFile(settings.pod_patch, sample_template(pods), require_pod_template)
    file.current()
    return file.current


async def serve(settings: Settings, rules: Rules, port: int, kubeconfig: str | None) -> None:
    """Run gateway and reconciler on this event loop."""
    exchange = FileExchange(settings.exchange_root(), is_private=False)
    exchange.prepare()
    loop = asyncio.get_running_loop()
    async with only_writer(exchange.root), Cluster.connect(kubeconfig) as cluster:
        exchange.sweep()
        reconciler = Reconciler(
            cluster,
            exchange,
            rules.pods,
            rules.tenants.namespaces,
            lambda job: context.feed.mark(job),
            rules.wait_limits,
            Caps.of(settings).record,
            rules.pod_patch,
            on_ended=lambda job: couriers.look(job),
        )

        def on_change(job: str) -> None:
            reconciler.enqueue(job)
            context.feed.mark(job)

        def on_request(job: str) -> None:
            loop.call_soon_threadsafe(on_change, job)

        pods = CourierPods.of(settings, rules.pod_patch)
        couriers = Couriers(cluster, exchange, reconciler.objects, pods, on_change)
        backend = KubernetesBackend(on_request, reconciler.placement_of)
        identities = Identities(cluster, rules.tenants, reconciler, couriers=couriers)
        nodes = NodeWatch(cluster, counts_devices=settings.device_counts)
        planner = PodPlanner(nodes.nodes, rules.pod_patch, nodes.is_starting, nodes.requests)
        context = gateway_context(settings, exchange, backend, identities, on_change, planner)
        checks = ClusterChecks(cluster, reconciler.manifest, reconciler.kernels)
        events = RecentEvents(cluster, exchange, reconciler.objects)
        context = replace(context, checks=checks, events=events)
        policy = Policy.parse(settings.retention, settings.exchange_cap)
        housekeeping = Housekeeping(exchange, context.intake.budgets, policy)
        housekeeping.start()
        server = http_server(context)
        server.listen(port)
        task = asyncio.gather(reconciler.run(), couriers.run(), context.feed.run(), nodes.run())
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            server.stop()
            # Before anything that requests need is gone: a client that is cut off tries again.
            await server.close_all_connections()
            housekeeping.stop()


def gateway_context(
    settings: Settings,
    exchange: FileExchange,
    backend: KubernetesBackend,
    identities: Identities,
    on_change: Callable[[str], None],
    planner: PodPlanner,
) -> GatewayContext:
    """Return what the gateway's handlers share."""
    catalog = CatalogFile(settings.catalog_path)
    catalog.log_problem()
    budgets = Budgets(exchange, Caps.of(settings))
    intake = Intake(
        exchange.root,
        budgets,
        ThreadPoolExecutor(BULK_THREADS, thread_name_prefix="bulk"),
        idle_timeout=parse_duration(settings.body_idle_timeout),
        timeout=parse_duration(settings.body_timeout),
    )
    intake.prepare()
    core = ServiceContext(
        exchange,
        backend,
        catalog.current,
        budgets.caps.output_limit(settings.output_limit()),
        limits=READER_LIMITS,
        admit_job=budgets.admit_job,
    )
    return GatewayContext(
        core=core,
        identities=identities,
        exchange_routes=ExchangeRoutes(exchange, AttemptBudgets(exchange, budgets)),
        pool=ThreadPoolExecutor(QUICK_THREADS, thread_name_prefix="quick"),
        feed=GatewayFeed(core),
        on_change=on_change,
        intake=intake,
        planner=planner,
    )


if __name__ == "__main__":
    main()
