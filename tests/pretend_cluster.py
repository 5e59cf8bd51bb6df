"""A cluster that is a few dictionaries: pods, claims, and tokens that are bound to pods."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from jupyter_to_job.backends.kubernetes.records import PodRecord, pod_record
from jupyter_to_job.controller.callers.tenants import OwnerRule, Tenants
from jupyter_to_job.controller.cluster.cluster import Review
from jupyter_to_job.domain.errors import NotFound, Refused, Unavailable

USERNAME = "hub.jupyter.org/username"
JOB_LABEL = "jupyter-to-job.io/job"
PINNED_IMAGE = f"registry/notebook@sha256:{'a' * 64}"


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def tenants(rule: str = f"annotation={USERNAME}", **rules: Any) -> Tenants:
    """Return an administrator's rules for the namespaces `team` and `other`."""
    return Tenants(frozenset(["team", "other"]), OwnerRule.parse(rule), **rules)


def token_for(pod: dict[str, Any], **claims: Any) -> str:
    """Return a token as the API server makes it for a pod, with a signature of noise."""
    metadata = pod["metadata"]
    bound = {key: metadata[key] for key in ("name", "uid")}
    payload = {
        "aud": ["jupyter-to-job"],
        "exp": int(time.time()) + 3600,
        "kubernetes.io": {"namespace": metadata["namespace"], "pod": bound},
        **claims,
    }
    parts = [{"alg": "RS256"}, payload]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in parts]
    return ".".join([*(part.rstrip("=") for part in encoded), secrets.token_urlsafe(16)])


@dataclass
class PretendCluster:
    """Answers as `controller.cluster.Cluster` does, and counts what it is asked.

    Reviews wait while `gate` is cleared. `forbidden` are namespaces without our Role, and `is_away`
    makes every call fail.
    """

    pods: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    claims: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    tokens: dict[str, dict[str, Any]] = field(default_factory=dict)
    job_uids: dict[str, str] = field(default_factory=dict)
    job_pods: dict[str, PodRecord] = field(default_factory=dict)
    forbidden: set[str] = field(default_factory=set)
    is_away: bool = False
    reviews: int = 0
    running_reviews: int = 0
    most_reviews: int = 0
    reads: list[str] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)
    gate: asyncio.Event | None = None

    def add_pod(
        self,
        namespace: str = "team",
        name: str = "jupyter-ada",
        *,
        username: str | None = "ada",
        claim: str | None = None,
        path: str = "/home",
        groups: str = "",
        image: str = PINNED_IMAGE,
        **spec: Any,
    ) -> str:
        """Add a dev pod, with a claim mounted at `path` if one is named; return its token."""
        volumes, mounts = [], []
        if claim is not None:
            volumes = [{"name": "home", "persistentVolumeClaim": {"claimName": claim}}]
            mounts = [{"name": "home", "mountPath": path}]
            uid = f"{namespace}-{claim}-uid"
            self.claims[namespace, claim] = {
                "metadata": {"name": claim, "uid": uid},
                "spec": {"accessModes": ["ReadWriteOnce"]},
            }
        container = {"name": "notebook", "image": image, "volumeMounts": mounts}
        annotations = {"groups": groups}
        if username is not None:
            annotations[USERNAME] = username
        return self.add(
            {
                "metadata": {"namespace": namespace, "name": name, "annotations": annotations},
                "spec": {"containers": [container], "volumes": volumes, **spec},
                "status": {
                    "phase": "Running",
                    "containerStatuses": [{"name": "notebook", "state": {"running": {}}}],
                },
            }
        )

    def add(self, pod: dict[str, Any]) -> str:
        """Add a pod as it is, under a new uid, and return its token."""
        metadata = pod["metadata"]
        metadata["uid"] = secrets.token_hex(8)
        self.pods[metadata["namespace"], metadata["name"]] = pod
        token = token_for(pod)
        self.tokens[token] = pod
        return token

    def add_job_pod(
        self, job: str, namespace: str = "team", *, job_uid: str, suffix: str = "abcde"
    ) -> str:
        """Add a pod as the Job controller makes it, or as somebody forges it; return its token."""
        owner = {"kind": "Job", "name": job, "uid": job_uid, "controller": True}
        metadata = {
            "namespace": namespace,
            "name": f"{job}-{suffix}",
            "labels": {JOB_LABEL: job},
            "annotations": {USERNAME: "ada"},
            "ownerReferences": [owner],
        }
        spec = {"containers": [{"name": "notebook", "image": "notebook:1"}]}
        return self.add({"metadata": metadata, "spec": spec, "status": {"phase": "Running"}})

    def record(self, token: str) -> PodRecord:
        """Return the informer's record of the pod that has a token."""
        return pod_record(self.tokens[token])

    async def job_uid(self, job: str) -> str | None:
        """Return the uid of a job's Job on record."""
        return self.job_uids.get(job)

    def pod_of(self, job: str) -> PodRecord | None:
        """Return the record of a job's pod."""
        return self.job_pods.get(job)

    def hear(self, pod_uid: str) -> None:
        """Note that a pod's agent has just spoken."""
        self.heard.append(pod_uid)

    async def review(self, token: str) -> Review | None:
        """See `Cluster.review`."""
        self._require_there()
        self.reviews += 1
        self.running_reviews += 1
        self.most_reviews = max(self.most_reviews, self.running_reviews)
        try:
            await (self.gate.wait() if self.gate is not None else asyncio.sleep(0.01))
        finally:
            self.running_reviews -= 1
        metadata = self.tokens.get(token, {}).get("metadata")
        if metadata is None:
            return None
        current = self.pods.get((metadata["namespace"], metadata["name"]))
        if current is None or current["metadata"]["uid"] != metadata["uid"]:
            return None
        account = self.tokens[token]["spec"].get("serviceAccountName", "default")
        return Review(metadata["namespace"], account, metadata["name"], metadata["uid"])

    async def pod(self, namespace: str, name: str) -> dict[str, Any]:
        """See `Cluster.pod`."""
        return self._read("pod", self.pods, namespace, name)

    async def claim(self, namespace: str, name: str) -> dict[str, Any]:
        """See `Cluster.claim`."""
        return self._read("claim", self.claims, namespace, name)

    def _read(
        self, kind: str, found: dict[tuple[str, str], dict[str, Any]], namespace: str, name: str
    ) -> dict[str, Any]:
        self._require_there()
        self.reads.append(f"{kind} {namespace}/{name}")
        if namespace in self.forbidden:
            raise Refused(f"Kubernetes answered 403: cannot get {kind}s in {namespace}")
        if (namespace, name) not in found:
            raise NotFound(f"Kubernetes answered 404: {kind} {name} not found")
        return found[namespace, name]

    def _require_there(self) -> None:
        if self.is_away:
            raise Unavailable("Kubernetes cannot be reached.")
