"""origin.json: what the gateway reads of a dev pod, once. Builder and courier read that."""

from __future__ import annotations

from ...backends.kubernetes.records import Manifest
from ...domain.errors import Refused
from ..cluster.cluster import Review
from .volumes import mounts_of

COPIED_VARIABLES = frozenset(
    ["HOME", "LANG", "LC_ALL", "TZ", "PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "JUPYTER_PATH"]
)
"""The dev pod's variables that a job pod gets; never JUPYTERHUB_* or JPY_*."""
PROXIES = frozenset(
    [
        "istio-proxy", "linkerd-proxy", "envoy", "envoy-sidecar", "consul-dataplane",
        "kuma-sidecar", "oauth-proxy", "oauth2-proxy", "kube-rbac-proxy", "cloud-sql-proxy",
        "cloudsql-proxy", "vault-agent", "gke-gcsfuse-sidecar", "daprd", "queue-proxy", "tailscale",
    ]
)  # fmt: skip
"""Containers that are put beside others, and never have the notebooks."""


def notebook_container(pod: Manifest, name: str) -> Manifest:
    """Return the container called `name`, else the only one that is no known proxy.

    Raises Refused where that leaves none, or several.
    """
    containers: list[Manifest] = pod["spec"]["containers"]
    found = [c for c in containers if c["name"] == name]
    found = found or [c for c in containers if c["name"] not in PROXIES]
    if len(found) != 1:
        names = ", ".join(c["name"] for c in containers)
        raise Refused(
            f"It is not clear which container has the notebooks: {names}.",
            "The administrator sets its name with JUPYTER_TO_JOB_CONTAINER.",
        )
    return found[0]


def origin_of(pod: Manifest, review: Review, container: Manifest, claims: Manifest) -> Manifest:
    """Return origin.json: what a job pod copies of this dev pod, and what its paths lead to.

    `claims` has the claims that the container mounts, by name.
    """
    spec = pod["spec"]
    context = {**(spec.get("securityContext") or {}), **(container.get("securityContext") or {})}
    copied = ("runAsUser", "runAsGroup", "fsGroup", "supplementalGroups")
    variables = {e["name"]: e["value"] for e in container.get("env") or [] if "value" in e}
    return {
        "namespace": review.namespace,
        "pod": review.pod,
        "pod_uid": review.pod_uid,
        "node": spec.get("nodeName"),
        "service_account": review.service_account,
        "container": container["name"],
        "image": container["image"],
        "image_pull_secrets": spec.get("imagePullSecrets") or [],
        "security_context": {k: context[k] for k in copied if k in context},
        "env": {name: value for name, value in variables.items() if name in COPIED_VARIABLES},
        "mounts": mounts_of(pod, container, claims),
    }
