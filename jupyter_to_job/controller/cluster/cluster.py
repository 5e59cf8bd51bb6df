"""All calls of the Kubernetes API."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from kubernetes.aio import client, config

from ...backends.kubernetes import JobRecord, PodRecord
from ...backends.kubernetes.device_counts import PodRequests, pod_requests
from ...backends.kubernetes.manifest import AUDIENCE
from ...backends.kubernetes.nodes import NodeRecord, node_record
from ...backends.kubernetes.records import (
    JOB_LABEL,
    ClaimNode,
    Manifest,
    RefusalRecord,
    claim_node,
    cluster_event,
    job_record,
    pod_record,
    refusal_record,
)
from ...domain.errors import BadInput, Conflict, NotFound, Refused
from ...domain.job import ClusterEvent
from ...exchange.records import ClusterJob
from .api_calls import OnCall, tracing
from .api_errors import REQUEST_TIMEOUT, TRIAL_TIMEOUT, read_json, translate_errors
from .informer import PAGE_SIZE, Informer, ObjectKind, Record

_OF_JOBS = {"label_selector": JOB_LABEL}
_OF_NODES = {"field_selector": "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"}
_OF_REFUSALS = {"field_selector": "reason=FailedCreate,involvedObject.kind=Job"}


@dataclass(frozen=True)
class Review:
    """The result of a token review: the service account of a token and the pod it is bound to."""

    namespace: str
    service_account: str
    pod: str
    pod_uid: str


class Cluster:
    """The operations on the cluster that the controller needs, and has rights for."""

    def __init__(self, api: client.ApiClient) -> None:
        self._core = client.CoreV1Api(api)
        self._batch = client.BatchV1Api(api)
        self._authentication = client.AuthenticationV1Api(api)
        self._events = client.EventsV1Api(api)
        self._groups = client.ApisApi(api)

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(
        cls, kubeconfig: str | None = None, on_call: OnCall = lambda *_: None
    ) -> AsyncIterator[Cluster]:
        """Connect as the pod's own service account, or as a kubeconfig file says.

        `on_call` hears of each call.
        """
        # 0 is no limit: each watch holds a connection, and there are three for each namespace.
        access = client.Configuration(trace_configs=[tracing(on_call)], connection_pool_maxsize=0)
        if kubeconfig:
            await config.load_kube_config(kubeconfig, client_configuration=access)  # type: ignore[no-untyped-call]
        else:
            config.load_incluster_config(access)  # type: ignore[no-untyped-call]
        async with client.ApiClient(access) as api:
            yield cls(api)

    async def review(self, token: str) -> Review | None:
        """Return whose token it is; None unless it is valid for our audience and bound to a pod."""
        spec = client.V1TokenReviewSpec(token=token, audiences=[AUDIENCE])
        with translate_errors():
            review = await self._authentication.create_token_review(
                client.V1TokenReview(spec=spec), _request_timeout=REQUEST_TIMEOUT
            )
        status: Manifest = (review.status or client.V1TokenReviewStatus()).to_dict()
        if not status.get("authenticated") or AUDIENCE not in status.get("audiences", ()):
            return None
        kind, _, account = status["user"]["username"].partition(":serviceaccount:")
        extra = status["user"].get("extra") or {}
        pod = extra.get("authentication.kubernetes.io/pod-name")
        uid = extra.get("authentication.kubernetes.io/pod-uid")
        if kind != "system" or not pod or not uid:
            return None
        namespace, _, name = account.partition(":")
        return Review(namespace, name, pod[0], uid[0])

    async def pod(self, namespace: str, name: str) -> Manifest:
        """Return a pod as the API returns it. Raises NotFound."""
        async with self._in_namespace(namespace):
            return await read_json(
                await self._core.read_namespaced_pod_without_preload_content(
                    name, namespace, _request_timeout=REQUEST_TIMEOUT
                )
            )

    async def claim(self, namespace: str, name: str) -> Manifest:
        """Return a persistent volume claim as the API returns it. Raises NotFound."""
        async with self._in_namespace(namespace):
            return await read_json(
                await self._core.read_namespaced_persistent_volume_claim_without_preload_content(
                    name, namespace, _request_timeout=REQUEST_TIMEOUT
                )
            )

    async def node_with_claim(self, namespace: str, claim: str) -> str:
        """Return the node whose pods have a claim mounted, or else one whose pods wait for it.

        "" if no pod on a node names it.
        """
        nodes: set[ClaimNode] = set()
        query: dict[str, Any] = {"limit": PAGE_SIZE, "_request_timeout": REQUEST_TIMEOUT}
        while True:
            with translate_errors():
                page = await read_json(
                    await self._core.list_namespaced_pod_without_preload_content(namespace, **query)
                )
            claim_nodes = (claim_node(pod, claim) for pod in page["items"])
            nodes.update(node for node in claim_nodes if node is not None)
            query["_continue"] = page["metadata"].get("continue")
            if not query["_continue"]:
                return min(nodes).node if nodes else ""

    async def has_namespace(self, namespace: str) -> bool:
        """Tell whether a namespace exists."""
        try:
            with translate_errors():
                await read_json(
                    await self._core.read_namespace_without_preload_content(
                        namespace, _request_timeout=REQUEST_TIMEOUT
                    )
                )
        except NotFound:
            return False
        return True

    @contextlib.asynccontextmanager
    async def _in_namespace(self, namespace: str) -> AsyncIterator[None]:
        """Translate the client's errors: it is NotFound, too, if the rights went with a namespace.

        Where a Role gives them, the API server refuses all calls once the namespace is deleted.
        """
        try:
            with translate_errors():
                yield
        except Refused as error:
            if await self.has_namespace(namespace):
                raise
            raise NotFound(f"The namespace {namespace} is gone.") from error

    async def api_groups(self) -> frozenset[str]:
        """Return the names of the API groups that the cluster serves."""
        with translate_errors():
            document = await read_json(
                await self._groups.get_api_versions_without_preload_content(
                    _request_timeout=REQUEST_TIMEOUT
                )
            )
        return frozenset(group["name"] for group in document["groups"])

    async def create_job(self, manifest: Manifest) -> str:
        """Create a Job, and return its uid.

        Raises Conflict if it exists, Refused if a policy or quota forbids it now, BadInput if it is
        not valid, NotFound without its namespace.
        """
        namespace = manifest["metadata"]["namespace"]
        body = _job(manifest)
        async with self._in_namespace(namespace):
            job = await self._batch.create_namespaced_job(
                namespace, body, _request_timeout=REQUEST_TIMEOUT
            )
        return str(job.to_dict()["metadata"]["uid"])

    async def try_job(self, manifest: Manifest) -> None:
        """Let the API server check a Job, without creating it. Raises what `create_job` does.

        A name that is taken is no fault: it is looked at last.
        """
        with contextlib.suppress(Conflict), translate_errors():
            await self._batch.create_namespaced_job(
                manifest["metadata"]["namespace"],
                _job(manifest),
                dry_run="All",
                _request_timeout=TRIAL_TIMEOUT,
            )

    async def try_pod(self, manifest: Manifest) -> None:
        """Let the API server check the pod of a Job, without creating it. Raises as `try_job`."""
        with contextlib.suppress(Conflict), translate_errors():
            await self._core.create_namespaced_pod(
                manifest["metadata"]["namespace"],
                _pod(manifest),
                dry_run="All",
                _request_timeout=TRIAL_TIMEOUT,
            )

    async def find_job(self, namespace: str, name: str) -> JobRecord | None:
        """Return the Job of a name as the API server knows it, and not a watch; None without it."""
        try:
            async with self._in_namespace(namespace):
                document = await read_json(
                    await self._batch.read_namespaced_job_without_preload_content(
                        name, namespace, _request_timeout=REQUEST_TIMEOUT
                    )
                )
        except NotFound:
            return None
        return job_record(document)

    async def events_of(self, namespace: str, uid: str) -> list[ClusterEvent]:
        """Return the events of the object with a uid."""
        with translate_errors():
            page = await read_json(
                await self._core.list_namespaced_event_without_preload_content(
                    namespace,
                    field_selector=f"involvedObject.uid={uid}",
                    limit=PAGE_SIZE,
                    _request_timeout=TRIAL_TIMEOUT,
                )
            )
        return [cluster_event(item) for item in page["items"]]

    async def delete_pod(self, pod: PodRecord, grace: int) -> None:
        """Delete a pod with a grace period in seconds; it may be gone already."""
        options = client.V1DeleteOptions(
            grace_period_seconds=grace, preconditions=client.V1Preconditions(uid=pod.uid)
        )
        with contextlib.suppress(NotFound, Conflict):
            async with self._in_namespace(pod.namespace):
                await self._core.delete_namespaced_pod(
                    pod.name, pod.namespace, body=options, _request_timeout=REQUEST_TIMEOUT
                )

    async def delete_job(self, job: ClusterJob) -> None:
        """Delete a Job and its pods; it may be gone already, and another have its name."""
        # All options are in the body: the API server ignores those of the query beside one, and
        # without a policy a Job leaves its pods behind.
        options = client.V1DeleteOptions(
            propagation_policy="Background", preconditions=client.V1Preconditions(uid=job.uid)
        )
        with contextlib.suppress(NotFound, Conflict):
            async with self._in_namespace(job.namespace):
                await self._batch.delete_namespaced_job(
                    job.name, job.namespace, body=options, _request_timeout=REQUEST_TIMEOUT
                )

    async def create_event(self, event: Manifest) -> None:
        """Create an event of events.k8s.io/v1."""
        body = client.EventsV1Event.model_validate(event)
        with translate_errors():
            await self._events.create_namespaced_event(
                event["metadata"]["namespace"], body, _request_timeout=REQUEST_TIMEOUT
            )

    def jobs(
        self, namespace: str | None, on_change: Callable[[JobRecord], None]
    ) -> Informer[JobRecord]:
        """Return an informer of our Jobs in a namespace (None: in all), by their names."""
        lister = self._lister(self._batch, "job", namespace)
        kind = ObjectKind("jobs", lister, _OF_JOBS, job_record, lambda r: r.name)
        return self._informer(kind, namespace, on_change)

    def pods(
        self, namespace: str | None, on_change: Callable[[PodRecord], None]
    ) -> Informer[PodRecord]:
        """Return an informer of job pods, by their uids."""
        lister = self._lister(self._core, "pod", namespace)
        kind = ObjectKind("pods", lister, _OF_JOBS, pod_record, lambda r: r.uid)
        return self._informer(kind, namespace, on_change)

    def refusals(
        self, namespace: str | None, on_change: Callable[[RefusalRecord], None]
    ) -> Informer[RefusalRecord]:
        """Return an informer of events: a Job's pod was refused. One for each Job, by its uid."""
        lister = self._lister(self._core, "event", namespace)
        kind = ObjectKind("events", lister, _OF_REFUSALS, refusal_record, lambda r: r.job_uid)
        return self._informer(kind, namespace, on_change)

    def nodes(self) -> Informer[NodeRecord]:
        """Return an informer of nodes, by their names."""
        kind = ObjectKind(
            "nodes",
            self._core.list_node_without_preload_content,
            {},
            node_record,
            lambda record: record.name,
        )
        return Informer(kind, lambda _: None)

    def requests(self) -> Informer[PodRequests]:
        """Return an informer of all pods that take something of a node, by their uids.

        It needs a right that the controller can do without.
        """
        kind = ObjectKind(
            "the pods of all nodes",
            self._core.list_pod_for_all_namespaces_without_preload_content,
            _OF_NODES,
            pod_requests,
            lambda record: record.uid,
        )
        return Informer(kind, lambda _: None)

    def _lister(self, api: Any, kind: str, namespace: str | None) -> Callable[..., Any]:
        scope = f"{kind}_for_all_namespaces" if namespace is None else f"namespaced_{kind}"
        lister: Callable[..., Any] = getattr(api, f"list_{scope}_without_preload_content")
        return lister if namespace is None else partial(lister, namespace)

    def _informer(
        self, kind: ObjectKind[Record], namespace: str | None, on_change: Callable[[Record], None]
    ) -> Informer[Record]:
        if namespace is None:
            return Informer(kind, on_change)
        kind = replace(kind, label=f"{kind.label} in {namespace}")
        return Informer(kind, on_change, partial(self.has_namespace, namespace))


def _job(manifest: Manifest) -> client.V1Job:
    """Return a Job as the client has it. Raises BadInput."""
    try:
        return client.V1Job.model_validate(manifest)
    except ValueError as error:  # a patch of the administrator may have any form
        raise BadInput(f"This is no Job of Kubernetes: {error}") from error


def _pod(manifest: Manifest) -> client.V1Pod:
    """Return a pod as the client has it. Raises BadInput."""
    try:
        return client.V1Pod.model_validate(manifest)
    except ValueError as error:
        raise BadInput(f"This is no pod of Kubernetes: {error}") from error


def require_pod_template(template: Manifest) -> None:
    """Raise BadInput for a template with fields or values that a pod cannot have."""
    _pod(template)
