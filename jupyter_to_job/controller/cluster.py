"""All calls of the Kubernetes API. Its errors are translated to ours here.

The informer is our own: the client has no asynchronous one, and its threaded one neither pages nor
times out. Objects are reduced to small records as they arrive.
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

PAGE_SIZE = 500
WATCH_TIMEOUT = 300
"""Seconds after which the API server is asked to end a watch."""
WATCH_READ_TIMEOUT = 330
"""Seconds after which a watch that the API server did not end counts as stalled."""
REQUEST_TIMEOUT = 30
"""Seconds for a request that is no watch: a slow API server must not stop the whole queue."""
WATCH_RETRY_DELAY = 1.0
_log = logging.getLogger(__name__)

Record = TypeVar("Record", JobRecord, PodRecord)


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

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(cls, kubeconfig: str | None = None) -> AsyncIterator[Cluster]:
        """Connect as the pod's own service account, or as a kubeconfig file says."""
        if kubeconfig:
            await config.load_kube_config(config_file=kubeconfig)  # type: ignore[no-untyped-call]
        else:
            config.load_incluster_config()  # type: ignore[no-untyped-call]
        async with client.ApiClient() as api:
            yield cls(api)

    async def review(self, token: str) -> Review | None:
        """Return whose token it is; None unless it is valid for our audience and bound to a pod."""
        spec = client.V1TokenReviewSpec(token=token, audiences=[AUDIENCE])
        with _translate_errors():
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
        with _translate_errors():
            return await _read_json(
                await self._core.read_namespaced_pod_without_preload_content(
                    name, namespace, _request_timeout=REQUEST_TIMEOUT
                )
            )

    async def create_job(self, manifest: Manifest) -> None:
        """Create a Job. Raises Conflict if it exists, Refused if a policy or quota forbids it."""
        namespace = manifest["metadata"]["namespace"]
        with _translate_errors():
            await self._batch.create_namespaced_job(
                namespace, client.V1Job.model_validate(manifest), _request_timeout=REQUEST_TIMEOUT
            )

    async def delete_pod(self, namespace: str, name: str, grace: int) -> None:
        """Delete a pod with a grace period in seconds; it may be gone already."""
        with contextlib.suppress(NotFound), _translate_errors():
            await self._core.delete_namespaced_pod(
                name, namespace, grace_period_seconds=grace, _request_timeout=REQUEST_TIMEOUT
            )

    async def delete_job(self, namespace: str, name: str) -> None:
        """Delete a Job and its pods; it may be gone already."""
        with contextlib.suppress(NotFound), _translate_errors():
            await self._batch.delete_namespaced_job(
                name,
                namespace,
                propagation_policy="Background",
                _request_timeout=REQUEST_TIMEOUT,
            )

    def jobs(self, on_change: Callable[[JobRecord], None]) -> Informer[JobRecord]:
        """Return an informer of our Jobs; its keys are `namespace/name`.

        The name alone is not enough: another namespace may have a foreign Job with our label.
        """
        lister = self._batch.list_job_for_all_namespaces_without_preload_content
        return Informer(lister, job_record, lambda r: f"{r.namespace}/{r.name}", on_change)

    def pods(self, on_change: Callable[[PodRecord], None]) -> Informer[PodRecord]:
        """Return an informer of our job pods; its keys are the uids of the Jobs that made them.

        Their label is not enough: everybody who creates pods may give them any label.
        """
        lister = self._core.list_pod_for_all_namespaces_without_preload_content
        return Informer(lister, pod_record, lambda r: r.job_uid, on_change)


class Informer(Generic[Record]):
    """Keeps the records of one kind up to date by list and watch, and reports each change.

    `synced` is set once the first list is complete.
    """

    def __init__(
        self,
        lister: Callable[..., Any],
        project: Callable[[Manifest], Record],
        key: Callable[[Record], str],
        on_change: Callable[[Record], None],
    ) -> None:
        self._lister = lister
        self._project: Callable[[Manifest], Record] = project
        self._key: Callable[[Record], str] = key
        self._on_change: Callable[[Record], None] = on_change
        self.records: dict[str, Record] = {}
        self.synced = asyncio.Event()

    async def run(self) -> None:
        """List and watch for ever. After every error the list is read anew."""
        while True:
            try:
                version = await self._list()
                self.synced.set()
                while version:
                    version = await self._watch(version)
            except JobsError as error:
                _log.warning("the watch is begun again: %s", error)
            except Exception:  # a truncated line or an object of an unexpected shape
                _log.exception("the watch is begun again")
            await asyncio.sleep(WATCH_RETRY_DELAY)

    async def _list(self) -> str:
        """Read all records, report the differences, and return the version to watch from."""
        records: dict[str, Record] = {}
        query: dict[str, Any] = {
            "label_selector": JOB_LABEL,
            "limit": PAGE_SIZE,
            "_request_timeout": REQUEST_TIMEOUT,
        }
        while True:
            with _translate_errors():
                page = await _read_json(await self._lister(**query))
            for item in page["items"]:
                record = self._project(item)
                records[self._key(record)] = record
            metadata = page["metadata"]
            if not metadata.get("continue"):
                break
            query["_continue"] = metadata["continue"]
        previous, self.records = self.records, records
        for key in previous.keys() | records.keys():
            if previous.get(key) != records.get(key):
                self._on_change(records[key] if key in records else previous[key])
        return str(metadata["resourceVersion"])

    async def _watch(self, version: str) -> str:
        """Apply events until the watch ends. Return the version to go on from, "" to list anew."""
        with _translate_errors():
            response = await self._lister(
                label_selector=JOB_LABEL,
                watch=True,
                resource_version=version,
                allow_watch_bookmarks=True,
                timeout_seconds=WATCH_TIMEOUT,
                _request_timeout=WATCH_READ_TIMEOUT,
            )
            async with response:
                if response.status >= 400:
                    await _read_json(response)  # raises
                async for line in response.content:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        return ""
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        self._apply(event["type"], self._project(event["object"]))
        return version

    def _apply(self, kind: str, record: Record) -> None:
        key = self._key(record)
        if kind != "DELETED":
            self.records[key] = record
        elif key in self.records and self.records[key].uid == record.uid:
            del self.records[key]
        self._on_change(record)


async def _read_json(response: Any) -> Manifest:
    """Return the document in an unparsed response. Raises ApiException if it is an error.

    The client does not check the status of unparsed responses.
    """
    body = await response.read()
    if response.status >= 400:
        raise client.ApiException(status=response.status, reason=body.decode(errors="replace"))
    document: Manifest = json.loads(body)
    return document


@contextlib.contextmanager
def _translate_errors() -> Iterator[None]:
    """Translate the client's errors to ours."""
    try:
        yield
    except client.ApiException as error:
        message = f"Kubernetes answered {error.status}: {_reason(error)}"
        raise _ERRORS_BY_STATUS.get(error.status, Unavailable)(message) from error
    except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
        raise Unavailable(f"Kubernetes cannot be reached: {error!r}.") from error


_ERRORS_BY_STATUS: dict[int | None, type[JobsError]] = {
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
