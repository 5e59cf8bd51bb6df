"""Checks the policies of k8s/policies: they are there, bound, and refuse what they should."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ....backends.kubernetes.records import JOB_LABEL
from ....domain.errors import JobsError, NotFound
from ..result import CheckResult, ok, problem, warning
from .api import ClusterApi, Manifest
from .installation import EVERYWHERE, Installation, label_selector
from .trial_pod import trial_pod

_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_APPLY = "kubectl apply -k k8s/policies"


class ShippedPolicy(NamedTuple):
    """A policy that we ship, what can be done without it, and whether jobs are unsafe then."""

    name: str
    without: str
    is_needed: bool


OWN_JOBS = ShippedPolicy(
    "jupyter-to-job-own-jobs",
    "whoever may create pods can write the results of other users' jobs",
    is_needed=True,
)
NO_DEVICES = ShippedPolicy(
    "jupyter-to-job-no-devices",
    "whoever may create pods can hold a GPU without a job",
    is_needed=False,
)


def check(api: ClusterApi, installation: Installation) -> Iterator[CheckResult]:
    """Check both policies, and try out the one that everything rests on."""
    bindings = list(api.items(f"{_ADMISSION}/validatingadmissionpolicybindings"))
    for policy in (OWN_JOBS, NO_DEVICES):
        fault = _fault(api, installation, policy, bindings)
        if fault is None:
            yield ok(f"{policy.name} is in force")
            if policy is OWN_JOBS:
                yield from _trial(api, installation)
        else:
            message, fix = fault
            yield (problem if policy.is_needed else warning)(f"{message}: {policy.without}.", fix)


def _fault(
    api: ClusterApi, installation: Installation, policy: ShippedPolicy, bindings: list[Manifest]
) -> tuple[str, str] | None:
    """Return what keeps a policy from being in force, and the remedy; None if nothing does."""
    try:
        document = api.get(f"{_ADMISSION}/validatingadmissionpolicies/{policy.name}")
    except NotFound:
        return f"There is no policy {policy.name}", _APPLY
    specs = [b["spec"] for b in bindings if b["spec"].get("policyName") == policy.name]
    if not any("Deny" in (spec.get("validationActions") or ()) for spec in specs):
        return f"No binding makes {policy.name} deny anything", _APPLY
    warnings = (document.get("status", {}).get("typeChecking") or {}).get("expressionWarnings")
    if warnings:
        fix = "Apply the policies of this version; its expressions do not fit this Kubernetes."
        return f"{policy.name} is not understood: {warnings[0].get('warning')}", fix
    if policy is OWN_JOBS:
        return _unknown_controller(document, installation)
    return _outside(api, installation, specs)


def _unknown_controller(policy: Manifest, installation: Installation) -> tuple[str, str] | None:
    variables = {v["name"]: v["expression"] for v in policy["spec"].get("variables") or ()}
    if f"'{installation.account}'" in variables.get("controllers", installation.account):
        return None
    fix = f"Add '{installation.account}' to its variable `controllers`."
    return f"{policy['metadata']['name']} does not know this controller, so it makes no Jobs", fix


def _outside(
    api: ClusterApi, installation: Installation, bindings: list[Manifest]
) -> tuple[str, str] | None:
    """Return which listed namespaces no binding reaches, or of `*` that none is reached."""
    selectors = [
        (spec.get("matchResources") or {}).get("namespaceSelector") or {} for spec in bindings
    ]
    label_sets = [selector.get("matchLabels") or {} for selector in selectors]
    missing = []
    for name in installation.namespaces:
        if name != EVERYWHERE and not any(_has(api, name, labels) for labels in label_sets):
            missing.append(name)
    labels = " ".join(f"{key}={value}" for key, value in label_sets[0].items())
    if EVERYWHERE in installation.namespaces and not any(_reached(api, s) for s in label_sets):
        fix = f"kubectl label --overwrite namespace NAME {labels}, for each NAME with dev pods."
        return f"{NO_DEVICES.name} reaches no namespace", fix
    if not missing:
        return None
    fix = f"kubectl label --overwrite namespace {' '.join(missing)} {labels}"
    return f"{NO_DEVICES.name} does not reach {', '.join(missing)}", fix


def _reached(api: ClusterApi, labels: dict[str, str]) -> list[Manifest]:
    """Return the namespaces that have all of these labels."""
    return list(api.items("/api/v1/namespaces", labelSelector=label_selector(labels)))


def _has(api: ClusterApi, namespace: str, labels: dict[str, str]) -> bool:
    try:
        metadata = api.get(f"/api/v1/namespaces/{namespace}")["metadata"]
    except NotFound:
        return True  # which is told elsewhere
    return labels.items() <= (metadata.get("labels") or {}).items()


def _trial(api: ClusterApi, installation: Installation) -> Iterator[CheckResult]:
    """Try to make a pod that passes for one of a job; nothing is created."""
    namespace = installation.dev_namespace
    pod = trial_pod(installation, namespace)
    pod["metadata"]["labels"][JOB_LABEL] = "doctor-aaaaaaaa"
    try:
        api.create(f"/api/v1/namespaces/{namespace}/pods", pod, dryRun="All")
    except JobsError as error:
        if OWN_JOBS.name in error.message:
            yield ok(f"A forged job's pod is refused in {namespace}")
        else:
            yield warning(
                f"{OWN_JOBS.name} could not be tried: {error.message}",
                "Run it with the rights of an administrator. If a rule of the namespace refuses "
                "it, see `gateway`.",
            )
    else:
        yield problem(
            f"A forged job's pod is not refused in {namespace}: {OWN_JOBS.without}.",
            f"Compare {OWN_JOBS.name} and its binding with k8s/policies.",
        )
