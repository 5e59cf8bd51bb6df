"""Checks that the gateway is reached from a namespace of dev pods, by a pod there.

The API server's proxy would reach it, too. But a pod alone tells whether the Service's name is
known there, whether network policies let it through, and whether its token is accepted.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from typing import Any

from ....domain.errors import JobsError, Refused
from ..result import CheckResult, Level, ok, problem, warning
from .api import ClusterApi, Manifest
from .installation import Installation
from .trial_pod import trial_pod

SECONDS = 90
"""Seconds that the pod may take: its image may have to be pulled."""
_INTERVAL = 0.5
_ENDED = ("Succeeded", "Failed")
_NO_OWNER = ("does not say whose it is", "names nobody")
"""What a gateway says of a pod that it knows, and whose owner it does not."""
_RULES_OF_USERS = ("claim", "serviceaccount")
"""Owner rules by what the pod does not have: a user's claim, or a user's service account."""
_DISTRUST = "CERTIFICATE_VERIFY_FAILED"


def check(api: ClusterApi, installation: Installation) -> Iterator[CheckResult]:
    """Run a pod in the first namespace of dev pods, and tell what it found."""
    namespace = installation.dev_namespace
    pod = trial_pod(installation, namespace)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    path = f"{pods}/{pod['metadata']['name']}"
    try:
        api.create(pods, pod)
    except Refused as error:
        yield warning(
            f"No pod could be started in {namespace}, so the gateway was not tried from there: "
            f"{error.message}",
            "If a quota, limit range or policy refuses it, jobs and couriers may be refused, too: "
            "it has the agent's resources, which the pod patch sets.",
        )
        return
    try:
        container = pod["spec"]["containers"][0]["name"]
        if _has_ended(api, path, container):
            log = api.ask("GET", f"{path}/log", {"container": container}).body
            yield from _told(installation, namespace, log)
        else:
            yield _not_started(namespace, api.get(path))
    finally:
        with contextlib.suppress(JobsError):
            api.delete(path)


def _has_ended(api: ClusterApi, path: str, container: str) -> bool:
    """Wait until the pod's own container has ended; False if it does not in time.

    The pod itself may go on: an injected proxy that is no native sidecar never ends.
    """
    over = time.monotonic() + SECONDS
    while time.monotonic() < over:
        status = api.get(path).get("status", {})
        containers = {c["name"]: c for c in status.get("containerStatuses") or ()}
        state = containers.get(container, {}).get("state", {})
        if "terminated" in state or status.get("phase") in _ENDED:
            return True
        time.sleep(_INTERVAL)
    return False


def _not_started(namespace: str, pod: Manifest) -> CheckResult:
    """Return what keeps the pod from running."""
    status = pod.get("status", {})
    states = [c.get("state", {}).get("waiting") for c in status.get("containerStatuses") or ()]
    states += [c for c in status.get("conditions") or () if c.get("status") == "False"]
    state = next(filter(None, states), {"reason": "nobody says why"})
    why = ": ".join(filter(None, (state.get("reason"), state.get("message"))))
    return problem(
        f"In {namespace} the pod that was to try the gateway did not run within {SECONDS} s: {why}",
        "Can the agent's image be pulled there, and has a node room for what the agent asks for?",
    )


def _told(installation: Installation, namespace: str, log: str) -> Iterator[CheckResult]:
    """Yield what the pod's own `doctor` says of the gateway."""
    findings = _findings(log)
    if not findings:
        last_line = next((line for line in reversed(log.splitlines()) if line.strip()), "nothing")
        yield problem(
            f"In {namespace} the pod that was to try the gateway failed. It said: {last_line}",
            "Does JUPYTER_TO_JOB_AGENT_IMAGE name the image of this version's controller?",
        )
    for finding in findings:
        yield _finding(installation, namespace, finding)


def _finding(installation: Installation, namespace: str, finding: dict[str, Any]) -> CheckResult:
    """Return a finding of the pod as one of ours; what only such a pod lacks is no problem."""
    level, message = Level(finding["level"]), f"From {namespace}: {finding['message']}"
    if level is Level.OK:
        return ok(message)
    if installation.owner_rule[0] in _RULES_OF_USERS and any(w in message for w in _NO_OWNER):
        rule = installation.setting("owner_rule")
        return ok(f"From {namespace}: It knows the pod by its token. No owner was tried, by {rule}")
    if installation.authority is None and _DISTRUST in message:
        return warning(
            f"{message} The certificate of its authority could not be read here, so the pod that "
            "tried it had none.",
            "See in a dev pod: jupyter-to-job doctor.",
        )
    network = (
        f"Do network policies let pods of {namespace} reach the gateway? k8s/network/doctor does "
        "for the pod that tried it."
    )
    return CheckResult(level, message, f"{finding['mend']} {network}".strip())


def _findings(log: str) -> list[dict[str, Any]]:
    """Return the findings about the gateway in the output of `doctor --json`."""
    try:
        document = json.loads(log)
    except ValueError:
        return []
    return [finding for finding in document if finding["area"] == "gateway"]
