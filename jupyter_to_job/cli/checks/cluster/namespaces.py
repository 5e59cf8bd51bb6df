"""Checks the namespaces of dev pods: they exist, and what their pods may do."""

from __future__ import annotations

from collections.abc import Iterator

from ....backends.kubernetes.manifest import AUDIENCE
from ....backends.kubernetes.records import JOB_LABEL
from ....domain.errors import NotFound
from ...display import formats
from ..result import CheckResult, ok, problem, warning
from .api import ClusterApi, Manifest
from .installation import EVERYWHERE, Installation

LEVEL = "pod-security.kubernetes.io/enforce"
"""The label of a namespace with the Pod Security level that its pods must have."""
_OPEN = ("", "privileged")
"""Levels at which a pod may mount a node's files, and so its devices."""


def check(api: ClusterApi, installation: Installation) -> Iterator[CheckResult]:
    """Check each namespace that the controller serves, and those that it could serve.

    Where all are served, those with our label are checked.
    """
    for name in installation.namespaces:
        if name == EVERYWHERE:
            yield ok("All namespaces are served: whoever may create pods may submit jobs")
            for labelled in installation.labelled_namespaces:
                yield _namespace(api, labelled)
        else:
            yield _namespace(api, name)
    yield from _unlisted(api, installation)


def _namespace(api: ClusterApi, name: str) -> CheckResult:
    try:
        namespace = api.get(f"/api/v1/namespaces/{name}")
    except NotFound:
        return problem(
            f"There is no namespace {name}, which JUPYTER_TO_JOB_NAMESPACES lists.",
            f"kubectl create namespace {name}, or take it out of the setting.",
        )
    level = (namespace["metadata"].get("labels") or {}).get(LEVEL, "")
    pods = sum(map(_is_dev_pod, api.items(f"/api/v1/namespaces/{name}/pods")))
    count = formats.plural(pods, "dev pod") if pods else "no dev pod now"
    if level in _OPEN:
        return warning(
            f"{name} ({count}) enforces no Pod Security: a pod there may mount a node's files, and "
            "so use devices that only jobs should have.",
            f"kubectl label --overwrite namespace {name} {LEVEL}=baseline, or restricted, as jobs "
            "satisfy it.",
        )
    return ok(f"{name}: {count}, Pod Security {level}")


def _is_dev_pod(pod: Manifest) -> bool:
    """Tell whether a pod can reach the gateway: it has a token for it, and is no job's."""
    sources = [
        source.get("serviceAccountToken") or {}
        for volume in pod["spec"].get("volumes") or ()
        for source in (volume.get("projected") or {}).get("sources") or ()
    ]
    has_token = any(source.get("audience") == AUDIENCE for source in sources)
    return has_token and JOB_LABEL not in (pod["metadata"].get("labels") or {})


def _unlisted(api: ClusterApi, installation: Installation) -> Iterator[CheckResult]:
    """Yield a warning of namespaces with rights for the controller that it does not serve."""
    served = {*installation.namespaces, installation.namespace}
    if EVERYWHERE in served:
        return
    account = installation.account.split(":")[-2:]
    having = {
        binding["metadata"]["namespace"]
        for binding in api.items("/apis/rbac.authorization.k8s.io/v1/rolebindings")
        for subject in binding.get("subjects") or ()
        if [subject.get("namespace"), subject.get("name")] == account
    }
    if having - served:
        names = ", ".join(sorted(having - served))
        yield warning(
            f"The controller has rights in {names}, and does not serve the pods there.",
            "Add them to JUPYTER_TO_JOB_NAMESPACES, or delete their RoleBinding.",
        )
