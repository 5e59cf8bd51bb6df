"""origin.json: what the gateway reads of a dev pod, once. Builder and courier read that."""

from __future__ import annotations

from ...backends.kubernetes.records import Manifest
from ...domain.errors import Refused
from ..cluster.cluster import Review
from .variables import Variables
from .volumes import mounts_of

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
    candidates = [c for c in containers if c["name"] == name]
    candidates = candidates or [c for c in containers if c["name"] not in PROXIES]
    if len(candidates) != 1:
        names = ", ".join(c["name"] for c in containers)
        raise Refused(
            f"It is not clear which container has the notebooks: {names}.",
            "The administrator sets its name with JUPYTER_TO_JOB_CONTAINER.",
        )
    return candidates[0]


def origin_of(
    pod: Manifest,
    review: Review,
    container: Manifest,
    claims: Manifest,
    variables: Variables = Variables(),  # noqa: B008 - it never changes
) -> Manifest:
    """Return origin.json: what a job pod copies of this dev pod, and what its paths lead to.

    `claims` has the claims that the container mounts, by name.
    """
    spec = pod["spec"]
    context = _security_context(pod, container)
    if "runAsUser" not in context:
        context = {**_user_that_runs(pod, container), **context}
    image = _image_that_runs(pod, container)
    return {
        "namespace": review.namespace,
        "pod": review.pod,
        "pod_uid": review.pod_uid,
        "node": spec.get("nodeName"),
        "tolerations": spec.get("tolerations") or [],
        "service_account": review.service_account,
        "container": container["name"],
        "image": image,
        "image_pinned": "@sha256:" in image,
        "image_pull_secrets": spec.get("imagePullSecrets") or [],
        "security_context": {k: context[k] for k in _COPIED if context.get(k) is not None},
        **variables.of(container),
        "mounts": mounts_of(pod, container, claims),
    }


_COPIED = (
    "runAsUser",
    "runAsGroup",
    "fsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxOptions",
)


def is_image_known(pod: Manifest, container: Manifest) -> bool:
    """Tell whether Kubernetes has said which image and user a container runs, or never will.

    It says that a moment after the start, if the pod does not. A pod that is on no node never runs.
    """
    status = _status_of(pod, container)
    is_told = bool(status.get("imageID")) or "running" in (status.get("state") or {})
    is_named = "@sha256:" in container["image"] and "runAsUser" in _security_context(pod, container)
    return is_told or is_named or not pod["spec"].get("nodeName")


def _security_context(pod: Manifest, container: Manifest) -> Manifest:
    """Return the security context of a container, with what its pod says for all of them."""
    of_pod, own = pod["spec"].get("securityContext"), container.get("securityContext")
    return {**(of_pod or {}), **(own or {})}


def _image_that_runs(pod: Manifest, container: Manifest) -> str:
    """Return the image by the digest that runs, whatever its tag means now.

    Of an image that no registry knows there is no such digest: then it is as the pod names it.
    """
    image = str(container["image"])
    if "@sha256:" in image:
        return image
    running = _status_of(pod, container).get("imageID") or ""
    running = running.rpartition("://")[2]  # of dockershim: docker-pullable://...
    return running if "@sha256:" in running else image


def _user_that_runs(pod: Manifest, container: Manifest) -> Manifest:
    """Return the user and group that the image of a container chose, as its status tells them.

    An older runtime does not tell them. Root is left out: no job may be root, and an image of the
    catalog may have another user.
    """
    user = (_status_of(pod, container).get("user") or {}).get("linux") or {}
    return {"runAsUser": user["uid"], "runAsGroup": user["gid"]} if user.get("uid") else {}


def _status_of(pod: Manifest, container: Manifest) -> Manifest:
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    return next((s for s in statuses if s["name"] == container["name"]), {})
