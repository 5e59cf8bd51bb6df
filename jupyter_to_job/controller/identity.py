"""Who is calling: always from the token's pod as the cluster knows it, never from the client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from ..backends.kubernetes import PodRecord
from ..backends.kubernetes.records import JOB_LABEL, Manifest, job_uid_of
from ..domain.errors import NotFound, Refused
from .cluster import Cluster, Review

REVIEW_SECONDS = 60.0
"""How long a token's review counts: it is asked again at most once a minute."""
ENV_NAMES = frozenset(
    ["HOME", "LANG", "LC_ALL", "TZ", "PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "JUPYTER_PATH"]
)
"""What a job pod takes of the dev pod's own variables; never JUPYTERHUB_* or JPY_*."""


@dataclass(frozen=True)
class DevPod:
    """A caller in a dev pod; `origin` is what goes into origin.json."""

    owner: str
    origin: Manifest


@dataclass(frozen=True)
class AgentPod:
    """A caller in a job pod: it may touch its own job's pieces and nothing else."""

    job: str
    pod_uid: str


Identity = DevPod | AgentPod


class Identities:
    """Reviews tokens and remembers the answers for a while.

    Pods outside of `namespaces` are strangers, whatever their annotations say (empty: none is).
    `job_uid` and `pod_of` are what the reconciler knows of a job's Job and pod.
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
        self._known: dict[str, tuple[float, Identity]] = {}
        self._reviews: dict[str, asyncio.Task[Identity]] = {}

    async def of(self, token: str) -> Identity:
        """Return who holds `token`. Raises Refused, or Unavailable while nobody can tell."""
        moment = time.monotonic()
        self._known = {t: k for t, k in self._known.items() if k[0] > moment}
        if token in self._known and self._is_there(self._known[token][1]):
            return self._known[token][1]
        # One review a token, and none waits for another's: bad tokens hold up nobody.
        if token not in self._reviews:
            self._reviews[token] = asyncio.create_task(self._review(token))
            self._reviews[token].add_done_callback(lambda _: self._reviews.pop(token))
        identity = await asyncio.shield(self._reviews[token])
        self._known[token] = (moment + REVIEW_SECONDS, identity)
        return identity

    def _is_there(self, identity: Identity) -> bool:
        """Tell whether what is remembered still counts: an agent's ends with its pod."""
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
        """Accept a pod as a job's only if that job's Job, by its uid, made it."""
        job = pod["metadata"]["labels"][JOB_LABEL]
        maker = job_uid_of(pod)
        if not maker or maker != self._job_uid(job):
            raise Refused("This pod was not made by a Job of ours.")
        return AgentPod(job, pod["metadata"]["uid"])


def owner_of(pod: Manifest, review: Review, rule: str) -> str:
    """Apply the admin's rule: `annotation=KEY`, `label=KEY` or `serviceaccount`. Raises Refused."""
    kind, _, key = rule.partition("=")
    if kind == "serviceaccount":
        return f"{review.namespace}/{review.service_account}"
    found = (pod["metadata"].get(f"{kind}s") or {}).get(key)
    if not found:
        raise Refused(
            f"The pod {review.pod} does not say whose it is: it has no {kind} {key!r}.",
            "The administrator sets the rule with JUPYTER_TO_JOB_OWNER_RULE.",
        )
    return str(found)


def origin_of(pod: Manifest, review: Review) -> Manifest:
    """Return origin.json: what a job pod takes over from this dev pod, read once."""
    spec = pod["spec"]
    main = spec["containers"][0]
    context = {**(spec.get("securityContext") or {}), **(main.get("securityContext") or {})}
    kept = ("runAsUser", "runAsGroup", "fsGroup", "supplementalGroups")
    plain = {e["name"]: e["value"] for e in main.get("env") or [] if "value" in e}
    return {
        "namespace": review.namespace,
        "pod": review.pod,
        "pod_uid": review.pod_uid,
        "node": spec.get("nodeName"),
        "service_account": review.service_account,
        "image": main["image"],
        "image_pull_secrets": spec.get("imagePullSecrets") or [],
        "security_context": {k: context[k] for k in kept if k in context},
        "env": {name: value for name, value in plain.items() if name in ENV_NAMES},
    }
