"""`python -m jupyter_to_job.controller`: gateway and reconciler in one process, one replica."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from .. import logs
from ..backends.kubernetes import JobPods, KubernetesBackend
from ..backends.kubernetes.manifest import sample_template
from ..backends.kubernetes.pod_patch import PodPatchFile
from ..backends.kubernetes.records import Manifest
from ..domain.errors import BadInput, Refused
from ..domain.quantities import parse_duration
from ..exchange import FileExchange
from ..exchange.retention import Policy
from ..flavors import CatalogFile
from ..service.jobs import ServiceContext
from ..wiring import Settings
from .callers.identity import Identities
from .callers.tenants import Tenants
from .certificate import Certificate
from .cluster.cluster import Cluster, require_pod_template
from .cluster.node_watch import NodeWatch
from .cluster.whole_cluster import require_rights_everywhere
from .cluster_events import ClusterEvents
from .connection_limit import raise_open_file_limit
from .couriers.couriers import Couriers
from .couriers.manifest import CourierPods
from .feed.gateway_feed import GatewayFeed
from .gateway import READER_LIMITS, http_server
from .handler import GatewayContext
from .intake.attempt_budgets import AttemptBudgets
from .intake.budgets import Budgets, Caps
from .intake.exchange_routes import ExchangeRoutes
from .intake.housekeeping import Housekeeping
from .intake.intake import Intake
from .job_tracker import JobTracker
from .metrics import Metrics
from .notifier import keep_notifier
from .one_writer import only_writer
from .operations import operations_server
from .pod_planner import PodPlanner
from .preflight.cluster_checks import ClusterChecks
from .readiness import ExchangeCheck, Readiness, Watch, passed, watches_check
from .recent_events import RecentEvents
from .reconciling.reconciler import Reconciler
from .reconciling.wait_limits import WaitLimits

QUICK_THREADS = 8
BULK_THREADS = 16


def main() -> None:
    """Serve until SIGTERM."""
    raise_open_file_limit()
    parser = argparse.ArgumentParser(prog="jupyter_to_job.controller", description=__doc__)
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--operations-port", type=int, default=9090, help="probes and metrics")
    parser.add_argument("--kubeconfig", help="default: the pod's own service account")
    options = parser.parse_args()
    try:
        settings = Settings.load()
        logs.configure(settings.log_format)
        tenants = Tenants.from_settings(settings)
    except BadInput as error:
        parser.error(str(error))
    if not (settings.agent_image and settings.gateway_url):
        parser.error("JUPYTER_TO_JOB_AGENT_IMAGE and JUPYTER_TO_JOB_GATEWAY_URL must be set")
    try:
        wait_limits = WaitLimits.parse(settings.start_limits)
    except BadInput as error:
        parser.error(f"JUPYTER_TO_JOB_START_LIMITS: {error}")
    try:
        certificate = Certificate(settings.gateway_tls)
        pods = JobPods(
            settings.agent_image,
            settings.gateway_url,
            files_timeout=wait_limits.agent,
            log_format=settings.log_format,
            gateway_ca=certificate.authority,
        )
        pod_patch = patch_in_force(settings, pods)
    except BadInput as error:
        parser.error(str(error))
    rules = Rules(tenants, wait_limits, pods, pod_patch, certificate)
    try:
        asyncio.run(run(settings, rules, options))
    except Refused as error:
        parser.error(str(error))


@dataclass(frozen=True)
class Rules:
    """What the settings say of dev pods, of the pods of their jobs, and of the gateway's HTTPS."""

    tenants: Tenants
    wait_limits: WaitLimits
    pods: JobPods
    pod_patch: Callable[[], Manifest]
    certificate: Certificate


def patch_in_force(settings: Settings, pods: JobPods) -> Callable[[], Manifest]:
    """Return what returns the administrator's patch. Raises BadInput if it is wrong."""
    if not settings.pod_patch:
        return dict
    file = PodPatchFile(settings.pod_patch, sample_template(pods), require_pod_template)
    file.current()
    return file.current


async def run(settings: Settings, rules: Rules, options: argparse.Namespace) -> None:
    """Open the port for operations, wait for the exchange, and serve until SIGTERM."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    metrics = Metrics()
    readiness = Readiness(metrics, "lock", "exchange", "watches", "gateway")
    server = operations_server(metrics, readiness)
    server.listen(options.operations_port)
    exchange = FileExchange(settings.exchange_root(), is_private=False)
    exchange.prepare()
    connection = Cluster.connect(options.kubeconfig, metrics.count_api_call)
    with contextlib.suppress(asyncio.CancelledError):
        async with only_writer(exchange.root), connection as cluster:
            readiness.set("lock", passed)
            readiness.set("exchange", ExchangeCheck(exchange.root))
            core = Controller(settings, rules, exchange, cluster, metrics)
            readiness.set("watches", watches_check(core.watches))
            await core.serve(options.port, readiness)
    server.stop()


class Controller:
    """Gateway and reconciler over one exchange, on the running event loop."""

    def __init__(
        self,
        settings: Settings,
        rules: Rules,
        exchange: FileExchange,
        cluster: Cluster,
        metrics: Metrics,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._events = ClusterEvents(cluster)
        self._reconciler = reconciler = Reconciler(
            cluster,
            exchange,
            rules.pods,
            rules.tenants.namespaces,
            lambda job: self._context.feed.mark(job),
            rules.wait_limits,
            Caps.of(settings).record,
            rules.pod_patch,
            on_ended=lambda job: self._couriers.look(job),
            tracker=JobTracker(metrics, self._events.tell),
        )
        pods = CourierPods.of(settings, rules.pod_patch, rules.wait_limits.agent)
        pods = replace(pods, gateway_ca=rules.pods.gateway_ca)
        self._couriers = Couriers(
            cluster, exchange, reconciler.objects, pods, self._on_change, metrics
        )
        self._nodes = nodes = NodeWatch(cluster, counts_devices=settings.device_counts)
        self._certificate = rules.certificate
        context = gateway_context(
            settings,
            exchange,
            KubernetesBackend(self._on_request, reconciler.placement_of),
            Identities(cluster, rules.tenants, reconciler, couriers=self._couriers),
            self._on_change,
            pod_planner(rules, nodes, reconciler),
        )
        checks = ClusterChecks(cluster, reconciler.manifest, reconciler.kernels)
        events = RecentEvents(cluster, exchange, reconciler.objects)
        self._context = replace(
            context, checks=checks, events=events, runs=reconciler.runs, metrics=metrics
        )
        policy = Policy.parse(settings.retention, settings.exchange_cap)
        self._housekeeping = Housekeeping(exchange, context.intake.budgets, policy, metrics)
        reconciler.objects.measure(metrics)
        nodes.measure(metrics)
        metrics.feed_clients.set_function(context.feed.clients)

    def _on_change(self, job: str) -> None:
        self._reconciler.enqueue(job)
        self._context.feed.mark(job)

    def _on_request(self, job: str) -> None:
        """See `_on_change`: from any thread."""
        self._loop.call_soon_threadsafe(self._on_change, job)

    def watches(self) -> Collection[Watch]:
        """Return the watches without which nothing is known of any job."""
        return self._reconciler.objects.watches()

    async def serve(self, port: int, readiness: Readiness) -> None:
        """Serve until the task is cancelled."""
        self._housekeeping.start()
        server = http_server(replace(self._context, readiness=readiness), self._certificate.context)
        server.listen(port)
        readiness.set("gateway", passed)
        parts = (self._reconciler, self._couriers, self._context.feed, self._nodes, self._events)
        more = [
            self._certificate.keep_current(),
            require_rights_everywhere(self._reconciler.namespaces, self.watches()),
        ]
        if self._context.core.has_hooks():
            more.append(keep_notifier(self._context.core.exchange.root))
        try:
            await asyncio.gather(*(part.run() for part in parts), *more)
        finally:
            server.stop()
            # Before anything that requests need is gone: a client that is cut off tries again.
            await server.close_all_connections()
            self._housekeeping.stop()


def pod_planner(rules: Rules, nodes: NodeWatch, reconciler: Reconciler) -> PodPlanner:
    """Return what plans the pods of jobs, from what is known of the cluster."""
    return PodPlanner(
        nodes.nodes,
        rules.pod_patch,
        nodes.is_starting,
        nodes.requests,
        reconciler.groups.lacks_kueue,
    )


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
        has_hooks=lambda: bool(settings.hook_files()),
        policy=Policy.parse(settings.retention, settings.exchange_cap),
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
