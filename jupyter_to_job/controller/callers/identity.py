"""Who is calling, from the pod that a token is bound to. The client's own claims never count."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from ...backends.kubernetes import PodRecord
from ...backends.kubernetes.records import JOB_LABEL, Manifest
from ...domain.errors import NotFound, Refused, Unavailable
from ...domain.names import is_job_name
from ..cluster.cluster import Review
from .origin import is_image_known, notebook_container, origin_of
from .shared_calls import Clock, SharedCalls
from .tenants import Tenants
from .tokens import TokenReviews
from .volumes import claim_names

POD_TTL = 600.0
"""Seconds for which what was read of a dev pod counts. Its token is reviewed far more often."""
IMAGE_LOOKS, IMAGE_INTERVAL = 10, 0.5
"""How often a pod is read, and seconds between two reads, until its image is known."""


@dataclass(frozen=True)
class DevPod:
    """A caller in a dev pod. `origin` is the content of origin.json.

    `unpinned_images`: its image may run in jobs without a digest.
    """

    owner: str
    origin: Manifest
    groups: frozenset[str] = field(default_factory=frozenset)
    unpinned_images: bool = False


@dataclass(frozen=True)
class AgentPod:
    """A caller in a job pod. It may access the files of its own job only."""

    job: str
    pod_uid: str


@dataclass(frozen=True)
class CourierPod:
    """A caller in a courier pod. It may read and report what it delivers, for its own job only."""

    job: str
    pod_uid: str


Identity = DevPod | AgentPod | CourierPod


class JobPod:
    """A pod with the label of our job pods that is not, or not yet, the record of a job's pod."""


class PodReader(Protocol):
    """The part of the cluster that identities need: reviews, and reads of pods and claims."""

    async def review(self, token: str) -> Review | None:
        """Return whose token it is, None for one that is not valid."""
        ...

    async def pod(self, namespace: str, name: str) -> Manifest:
        """Return a pod. Raises NotFound."""
        ...

    async def claim(self, namespace: str, name: str) -> Manifest:
        """Return a persistent volume claim. Raises NotFound."""
        ...


class JobPodRecords(Protocol):
    """What identities need of the reconciler, which knows the pods of our Jobs."""

    async def job_uid(self, job: str) -> str | None:
        """Return the uid of a job's Job on record: the pods of that Job alone are its agents.

        Raises Unavailable while it is not known.
        """
        ...

    def pod_of(self, job: str) -> PodRecord | None:
        """Return the record of a job's pod."""
        ...

    def hear(self, pod_uid: str) -> None:
        """Note that a pod's agent has just spoken."""
        ...


class CourierRecords(Protocol):
    """What identities need of the part that starts couriers."""

    def job_of(self, namespace: str, pod_uid: str) -> str | None:
        """Return the job that a pod delivers; None for one that is no courier of ours, or over."""
        ...


class Identities:
    """Finds out whose a token is.

    `job_pods` knows the pods of our Jobs, and `couriers` those that deliver.
    """

    def __init__(
        self,
        cluster: PodReader,
        tenants: Tenants,
        job_pods: JobPodRecords,
        clock: Clock = time.monotonic,
        couriers: CourierRecords | None = None,
    ) -> None:
        self._cluster = cluster
        self._tenants = tenants
        self._job_pods = job_pods
        self._couriers = couriers
        self._reviews = TokenReviews(cluster.review, tenants.require_namespace, clock)
        self._pods: SharedCalls[str, DevPod | JobPod] = SharedCalls(POD_TTL, clock=clock)

    async def authenticate(self, token: str) -> Identity:
        """Return whose `token` it is. Raises Refused; Unavailable if it cannot be checked."""
        review = await self._reviews.review(token)
        agent = await self._agent(review)
        if agent is not None:
            return agent
        if self._couriers is not None:
            job = self._couriers.job_of(review.namespace, review.pod_uid)
            if job is not None:
                return CourierPod(job, review.pod_uid)
        pod = await self._pods.get(review.pod_uid, partial(self._read, review))
        if isinstance(pod, JobPod):
            raise Refused("This pod is not the one that runs its job.")
        return pod

    async def _agent(self, review: Review) -> AgentPod | None:
        """Return the identity of the pod that the records have for a job; None for other pods.

        The records are asked for every request: an agent's rights end with its pod. The Job's uid
        on record decides, for everybody who creates Jobs and pods may give them our names and
        labels.
        """
        job = review.pod.rpartition("-")[0]  # Kubernetes derives a pod's name from its Job's
        uid = await self._job_pods.job_uid(job) if is_job_name(job) else None
        pod = self._job_pods.pod_of(job) if uid is not None else None
        if pod is None or (pod.namespace, pod.uid) != (review.namespace, review.pod_uid):
            return None
        if pod.job_uid != uid:
            raise Refused("This pod was not made by a Job of ours.")
        if pod.terminal or pod.gone:  # one that is lost hears that its attempt has ended
            raise Refused("The pod of this token has ended.")
        self._job_pods.hear(pod.uid)
        return AgentPod(job, pod.uid)

    async def _read(self, review: Review) -> DevPod | JobPod:
        """Read the pod that a token is bound to.

        Raises Refused if it is gone or has ended, and Unavailable while its image is not known yet.
        """
        for _ in range(IMAGE_LOOKS):
            pod = await self._pod(review)
            if JOB_LABEL in (pod["metadata"].get("labels") or {}):
                return JobPod()
            if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
                raise Refused("The pod of this token has ended.")
            container = notebook_container(pod, self._tenants.container)
            if is_image_known(pod, container):
                break
            await asyncio.sleep(IMAGE_INTERVAL)
        else:
            raise Unavailable(
                "Kubernetes does not tell yet which image your pod runs.", "Try again in a moment."
            )
        claims = await self._claims(review.namespace, claim_names(pod, container))
        origin = origin_of(pod, review, container, claims, self._tenants.variables)
        owner = self._tenants.owner(pod, origin)
        origin = {**origin, "owner": owner}
        return DevPod(owner, origin, self._tenants.groups(pod), self._tenants.unpinned_images)

    async def _pod(self, review: Review) -> Manifest:
        """Return the pod that a token is bound to. Raises Refused if it is gone."""
        try:
            pod = await self._cluster.pod(review.namespace, review.pod)
        except NotFound as error:
            raise Refused("The pod of this token is gone.") from error
        except Refused as error:
            raise _missing_role(review.namespace, error) from error
        if pod["metadata"]["uid"] != review.pod_uid:
            raise Refused("The pod of this token is gone.")
        return pod

    async def _claims(self, namespace: str, names: set[str]) -> Manifest:
        """Return the claims that exist, by name."""
        claims = {}
        for name in sorted(names):
            try:
                claims[name] = await self._cluster.claim(namespace, name)
            except NotFound:
                continue
            except Refused as error:
                raise _missing_role(namespace, error) from error
        return claims


def _missing_role(namespace: str, error: Refused) -> Unavailable:
    return Unavailable(
        f"The controller may not read the namespace {namespace}: {error.message}",
        "The administrator applies the Role of k8s/dev-namespace there.",
    )
