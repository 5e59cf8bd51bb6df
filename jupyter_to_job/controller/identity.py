"""Who is calling, from the pod that a token is bound to. The client's own claims never count."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ..backends.kubernetes import PodRecord
from ..backends.kubernetes.records import JOB_LABEL, Manifest, job_uid_of
from ..domain.errors import NotFound, Refused
from .cluster import Cluster, Review

REVIEW_TTL = 60.0
"""Seconds for which the review of a token is cached."""
COPIED_VARIABLES = frozenset(
    ["HOME", "LANG", "LC_ALL", "TZ", "PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "JUPYTER_PATH"]
)
"""The dev pod's variables that a job pod gets; never JUPYTERHUB_* or JPY_*."""


@dataclass(frozen=True)
class DevPod:
    """A caller in a dev pod. `origin` is the content of origin.json."""

    owner: str
    origin: Manifest


@dataclass(frozen=True)
class AgentPod:
    """A caller in a job pod. It may access the files of its own job only."""

    job: str
    pod_uid: str


Identity = DevPod | AgentPod


class Identities:
    """Reviews tokens and caches the results.

    Pods outside of `namespaces` are refused, whatever their annotations say; if it is empty, all
    namespaces are allowed. `job_uid` and `pod_of` return the reconciler's records of a job.
    """

    def __init__(
        self,
        cluster: Cluster,
        owner_rule: str,
        namespaces: frozenset[str],
        job_uid: Callable[[str], str | None],
        pod_of: Callable[[str], PodRecord | None],
    ) -> None:
        self._cluster = cluster
        self._rule = owner_rule
        self._namespaces = namespaces
        self._job_uid = job_uid
        self._pod_of = pod_of
        self._cache: dict[str, tuple[float, Identity]] = {}

    async def authenticate(self, token: str) -> Identity:
        """Return whose `token` it is. Raises Refused; Unavailable if it cannot be checked."""
        moment = time.monotonic()
        self._cache = {t: entry for t, entry in self._cache.items() if entry[0] > moment}
        if token in self._cache and self._is_valid(self._cache[token][1]):
            return self._cache[token][1]
        identity = await self._review(token)
        self._cache[token] = (moment + REVIEW_TTL, identity)
        return identity

    def _is_valid(self, identity: Identity) -> bool:
        """Return whether a cached identity is still valid: an agent's ends with its pod."""
        if isinstance(identity, DevPod):
            return True
        pod = self._pod_of(identity.job)
        return pod is not None and pod.uid == identity.pod_uid

    async def _review(self, token: str) -> Identity:
        review = await self._cluster.review(token)
        if review is None:
            raise Refused(
                "This token is not accepted.", "It must be bound to a pod, for our audience."
            )
        if self._namespaces and review.namespace not in self._namespaces:
            raise Refused(f"Pods in the namespace {review.namespace} may not submit jobs.")
        try:
            pod = await self._cluster.pod(review.namespace, review.pod)
        except NotFound as error:
            raise Refused("The pod of this token is gone.") from error
        if pod["metadata"]["uid"] != review.pod_uid:
            raise Refused("The pod of this token is gone.")
        if JOB_LABEL in (pod["metadata"].get("labels") or {}):
            return self._agent(pod)
        return DevPod(owner_of(pod, review, self._rule), origin_of(pod, review))

    def _agent(self, pod: Manifest) -> AgentPod:
        """Return the identity of a job pod, if it was made by the very Job (by uid) of its job."""
        job = pod["metadata"]["labels"][JOB_LABEL]
        uid = job_uid_of(pod)
        if not uid or uid != self._job_uid(job):
            raise Refused("This pod was not made by a Job of ours.")
        return AgentPod(job, pod["metadata"]["uid"])


def owner_of(pod: Manifest, review: Review, rule: str) -> str:
    """Apply the admin's rule: `annotation=KEY`, `label=KEY` or `serviceaccount`. Raises Refused."""
    kind, _, key = rule.partition("=")
    if kind == "serviceaccount":
        return f"{review.namespace}/{review.service_account}"
    owner = (pod["metadata"].get(f"{kind}s") or {}).get(key)
    if not owner:
        raise Refused(
            f"The pod {review.pod} does not say whose it is: it has no {kind} {key!r}.",
            "The administrator sets the rule with JUPYTER_TO_JOB_OWNER_RULE.",
        )
    return str(owner)


def origin_of(pod: Manifest, review: Review) -> Manifest:
    """Return origin.json: the parts of this dev pod that a job pod copies."""
    spec = pod["spec"]
    container = spec["containers"][0]
    context = {**(spec.get("securityContext") or {}), **(container.get("securityContext") or {})}
    copied = ("runAsUser", "runAsGroup", "fsGroup", "supplementalGroups")
    variables = {e["name"]: e["value"] for e in container.get("env") or [] if "value" in e}
    return {
        "namespace": review.namespace,
        "pod": review.pod,
        "pod_uid": review.pod_uid,
        "node": spec.get("nodeName"),
        "service_account": review.service_account,
        "image": container["image"],
        "image_pull_secrets": spec.get("imagePullSecrets") or [],
        "security_context": {k: context[k] for k in copied if k in context},
        "env": {name: value for name, value in variables.items() if name in COPIED_VARIABLES},
    }
