"""Checks the controller's Deployment and its pod."""

from __future__ import annotations

from collections.abc import Iterator

from ....domain.errors import JobsError
from ..result import CheckResult, ok, problem, warning
from .api import ClusterApi, Manifest
from .installation import Installation


def check(api: ClusterApi, installation: Installation) -> Iterator[CheckResult]:
    """Check that one controller runs, and why it does not."""
    spec = installation.deployment["spec"]
    if spec.get("replicas", 1) != 1 or spec.get("strategy", {}).get("type") != "Recreate":
        yield warning(
            "The Deployment has not one replica, or not the strategy Recreate: a second controller "
            "waits for the first one's lock.",
            "Set replicas: 1 and strategy: {type: Recreate}.",
        )
    pods = installation.pods()
    if not pods:
        yield _no_pod(installation)
        return
    yield _pod(api, installation, pods[-1])
    if not installation.namespaces:
        yield problem(
            "JUPYTER_TO_JOB_NAMESPACES is not set: the controller does not start.",
            "List the namespaces of dev pods, as an overlay of k8s/ does.",
        )


def _no_pod(installation: Installation) -> CheckResult:
    """Return why there is none: what refuses it, such as a quota, is told by the Deployment."""
    conditions = installation.deployment.get("status", {}).get("conditions") or ()
    failure = next((c for c in conditions if c["type"] == "ReplicaFailure"), None)
    if failure is None or failure.get("status") != "True":
        return problem("The controller has no pod.", _describe(installation, "deployment"))
    why = failure.get("message") or failure.get("reason")
    return problem(f"The controller has no pod: {why}", _describe(installation, "replicasets"))


def _pod(api: ClusterApi, installation: Installation, pod: Manifest) -> CheckResult:
    name, status = pod["metadata"]["name"], pod.get("status", {})
    conditions = {c["type"]: c for c in status.get("conditions") or ()}
    containers = status.get("containerStatuses") or []
    restarts = sum(c.get("restartCount", 0) for c in containers)
    if conditions.get("Ready", {}).get("status") == "True":
        node = pod["spec"].get("nodeName")
        if restarts:
            why = _last_end(containers)
            return warning(
                f"{name} runs on {node}, and was restarted {restarts} times{why}.",
                f"kubectl logs -n {installation.namespace} {name} --previous",
            )
        return ok(f"{name} is ready on {node}")
    why = _why_not(conditions, containers) or "no reason is told"
    words = _last_words(api, installation, name)
    return problem(f"{name} is not ready: {why}.{words}", _describe(installation, f"pod {name}"))


def _describe(installation: Installation, role: str) -> str:
    return f"kubectl describe -n {installation.namespace} {role}"


def _last_end(containers: list[Manifest]) -> str:
    ends = (c.get("lastState", {}).get("terminated") for c in containers)
    reasons = [e.get("reason", "") for e in ends if e]
    return f", the last time for {reasons[0]}" if reasons and reasons[0] else ""


def _why_not(conditions: dict[str, Manifest], containers: list[Manifest]) -> str:
    """Return why a pod is not ready, by the first of its states that tells."""
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        return str(scheduled.get("message") or scheduled.get("reason"))
    for container in containers:
        waiting = container.get("state", {}).get("waiting")
        if waiting:
            return ": ".join(filter(None, (waiting.get("reason"), waiting.get("message"))))
    return str(conditions.get("Ready", {}).get("message", ""))


def _last_words(api: ClusterApi, installation: Installation, name: str) -> str:
    """Return the last line of its log; "" if there is none, or nobody may read it."""
    path = f"/api/v1/namespaces/{installation.namespace}/pods/{name}/log"
    for previous in ("false", "true"):
        try:
            query = {"tailLines": "3", "container": installation.container["name"]}
            lines = api.ask("GET", path, {**query, "previous": previous}).body.split("\n")
        except JobsError:
            continue
        if any(lines):
            return f" Its last words: {next(line for line in reversed(lines) if line)}"
    return ""
