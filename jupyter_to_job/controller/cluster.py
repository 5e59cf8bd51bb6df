"""The one door to the Kubernetes API. Its errors become ours here, once.

List-watch is our own: the client's threaded informer neither pages nor times out, and there is no
async one. Objects are projected to small records as they come.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import aiohttp
from kubernetes.aio import client, config

from ..backends.kubernetes import JobRecord, PodRecord
from ..backends.kubernetes.manifest import AUDIENCE
from ..backends.kubernetes.records import JOB_LABEL, Manifest, job_record, pod_record
from ..domain.errors import Conflict, JobsError, NotFound, Refused, Unavailable

PAGE = 500
READ_TIMEOUT = 330
"""Seconds after which a watch counts as stalled: the server is asked to end it at 300."""
_SERVER_TIMEOUT = 300
REQUEST_TIMEOUT = 30
"""Seconds for one request that is no watch: the API server must not hold up a whole queue."""
_log = logging.getLogger(__name__)

R = TypeVar("R", JobRecord, PodRecord)


@dataclass(frozen=True)
class Review:
    """Whose token it is: a service account and, for a bound one, its pod."""

    namespace: str
    service_account: str
    pod: str
    pod_uid: str


class Cluster:
    """What the controller may do to the cluster, and nothing else."""

    def __init__(self, api: client.ApiClient) -> None:
        self._core = client.CoreV1Api(api)
        self._batch = client.BatchV1Api(api)
        self._authentication = client.AuthenticationV1Api(api)

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(cls, kubeconfig: str | None = None) -> AsyncIterator[Cluster]:
        """Connect as the pod's service account, or by a kubeconfig file."""
        if kubeconfig:
            await config.load_kube_config(config_file=kubeconfig)  # type: ignore[no-untyped-call]
        else:
            config.load_incluster_config()  # type: ignore[no-untyped-call]
        async with client.ApiClient() as api:
            yield cls(api)

    async def review(self, token: str) -> Review | None:
        """Return whose token it is, if it is bound to a pod and meant for us; else None."""
        spec = client.V1TokenReviewSpec(token=token, audiences=[AUDIENCE])
        with _translated():
            answer = await self._authentication.create_token_review(
                client.V1TokenReview(spec=spec), _request_timeout=REQUEST_TIMEOUT
            )
        status: Manifest = (answer.status or client.V1TokenReviewStatus()).to_dict()
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
        """Return a pod as the API answers it. Raises NotFound."""
        with _translated():
            return await _document(
                await self._core.read_namespaced_pod_without_preload_content(
                    name, namespace, _request_timeout=REQUEST_TIMEOUT
                )
            )

    async def create_job(self, manifest: Manifest) -> None:
        """Create a Job. Raises Conflict if there is one, Refused if policy or quota say no."""
        namespace = manifest["metadata"]["namespace"]
        with _translated():
            await self._batch.create_namespaced_job(
                namespace, client.V1Job.model_validate(manifest), _request_timeout=REQUEST_TIMEOUT
            )

    async def delete_pod(self, namespace: str, name: str, grace: int) -> None:
        """End a pod; one that is gone already is fine."""
        with contextlib.suppress(NotFound), _translated():
            await self._core.delete_namespaced_pod(
                name, namespace, grace_period_seconds=grace, _request_timeout=REQUEST_TIMEOUT
            )

    async def delete_job(self, namespace: str, name: str) -> None:
        """Delete a Job and its pods; one that is gone already is fine."""
        with contextlib.suppress(NotFound), _translated():
            await self._batch.delete_namespaced_job(
                name,
                namespace,
                propagation_policy="Background",
                _request_timeout=REQUEST_TIMEOUT,
            )

    def jobs(self, changed: Callable[[JobRecord], None]) -> Informer[JobRecord]:
        """Return the live records of our Jobs, by namespace and name.

        Not by name alone: elsewhere somebody else may have a Job that carries our label.
        """
        lister = self._batch.list_job_for_all_namespaces_without_preload_content
        return Informer(lister, job_record, lambda r: f"{r.namespace}/{r.name}", changed)

    def pods(self, changed: Callable[[PodRecord], None]) -> Informer[PodRecord]:
        """Return the live records of our job pods, by the uid of the Job that made them.

        Not by their label: anybody who makes pods may write any label on them.
        """
        lister = self._core.list_pod_for_all_namespaces_without_preload_content
        return Informer(lister, pod_record, lambda r: r.job_uid, changed)


class Informer(Generic[R]):
    """Records of one kind, kept up to date by list and watch. `changed` is told each record."""

    def __init__(
        self,
        lister: Callable[..., Any],
        project: Callable[[Manifest], R],
        key: Callable[[R], str],
        changed: Callable[[R], None],
    ) -> None:
        self._lister = lister
        self._project: Callable[[Manifest], R] = project
        self._key: Callable[[R], str] = key
        self._changed: Callable[[R], None] = changed
        self.records: dict[str, R] = {}
        self.synced = asyncio.Event()

    async def run(self) -> None:
        """List, then watch, for ever; whatever goes wrong ends in a new list."""
        while True:
            try:
                version = await self._list()
                self.synced.set()
                while version:
                    version = await self._watch(version)
            except JobsError as error:
                _log.warning("the watch is begun again: %s", error)
            except Exception:  # a line cut off, an object of another shape: a new list mends it
                _log.exception("the watch is begun again")
            await asyncio.sleep(1)

    async def _list(self) -> str:
        found: dict[str, R] = {}
        query: dict[str, Any] = {
            "label_selector": JOB_LABEL,
            "limit": PAGE,
            "_request_timeout": REQUEST_TIMEOUT,
        }
        while True:
            with _translated():
                page = await _document(await self._lister(**query))
            for item in page["items"]:
                record = self._project(item)
                found[self._key(record)] = record
            metadata = page["metadata"]
            if not metadata.get("continue"):
                break
            query["_continue"] = metadata["continue"]
        before, self.records = self.records, found
        for key in before.keys() | found.keys():
            if before.get(key) != found.get(key):
                self._changed(found[key] if key in found else before[key])
        return str(metadata["resourceVersion"])

    async def _watch(self, version: str) -> str:
        """Take events to the end of the watch; return where to go on, or "" to list anew."""
        with _translated():
            answer = await self._lister(
                label_selector=JOB_LABEL,
                watch=True,
                resource_version=version,
                allow_watch_bookmarks=True,
                timeout_seconds=_SERVER_TIMEOUT,
                _request_timeout=READ_TIMEOUT,
            )
            async with answer:
                if answer.status >= 400:
                    await _document(answer)
                async for line in answer.content:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        return ""
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        self._take(event["type"], self._project(event["object"]))
        return version

    def _take(self, kind: str, record: R) -> None:
        key = self._key(record)
        if kind != "DELETED":
            self.records[key] = record
        elif key in self.records and self.records[key].uid == record.uid:
            del self.records[key]
        self._changed(record)


async def _document(answer: Any) -> Manifest:
    """Return the body of an unparsed answer; without its body, errors would pass for objects."""
    body = await answer.read()
    if answer.status >= 400:
        raise client.ApiException(status=answer.status, reason=body.decode(errors="replace"))
    document: Manifest = json.loads(body)
    return document


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """Turn the client's errors into ours."""
    try:
        yield
    except client.ApiException as error:
        message = f"Kubernetes answered {error.status}: {_reason(error)}"
        raise _KINDS.get(error.status, Unavailable)(message) from error
    except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
        raise Unavailable(f"Kubernetes cannot be reached: {error!r}.") from error


_KINDS: dict[int | None, type[JobsError]] = {
    400: Refused,
    403: Refused,
    404: NotFound,
    409: Conflict,
    422: Refused,
}


def _reason(error: client.ApiException) -> str:
    try:
        return str(json.loads(error.body or "")["message"])
    except (TypeError, ValueError, KeyError):
        return str(error.reason)
