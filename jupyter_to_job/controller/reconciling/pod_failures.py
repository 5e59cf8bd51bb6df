"""Reason and message of an attempt, from the record of its pod.

The runner's own word comes first: it writes its outcome as termination message, too. The cluster's
word comes next, and last what exit code and container state tell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ...backends.kubernetes import ContainerEnd, PodRecord

_OUTPUT_KEPT = "what it had printed is kept"
_ARRIVED_KEPT = "what had arrived is kept"
_DISRUPTIONS = {
    "EvictionByEvictionAPI": ("Evicted", "The pod was evicted, as when its node is drained"),
    "TerminationByKubelet": ("Evicted", "The node was short of resources, or shuts down"),
    "PreemptionByScheduler": ("Preempted", "A job with a higher priority took its place"),
    "DeletionByTaintManager": ("NodeLost", "The node went away"),
    "DeletionByPodGC": ("NodeLost", "The node went away"),
}
"""Reasons of the condition DisruptionTarget, from Kubernetes' documentation of disruptions."""
_POD_REASONS = {
    "Evicted": ("Evicted", "The node was short of resources and evicted the pod"),
    "DeadlineExceeded": ("DeadlineExceeded", "The pod's time limit was reached"),
    "Preempting": ("Preempted", "A pod that its node needs took its place"),
    "NodeLost": ("NodeLost", "The node went away"),
}
_DISK_LIMITS = (
    "ephemeral local storage usage exceeds",
    "local ephemeral storage limit",
    "Usage of EmptyDir volume",
)
"""Words of the kubelet when it evicts a pod for its own use: that is no disruption."""
_RUNNER_MISSING = "The image has no job_runner: install jupyter-to-job in it."
_RUNNER_TOO_OLD = (
    "The jupyter-to-job in the image is too old for this controller: upgrade it in the image."
)
_NOT_EXECUTED = (126, 127)
"""Exit codes of a shell whose command cannot be executed."""
_NOT_STARTED = 128
"""Exit code that containerd gives a container that it could not start, for whatever reason."""
_COMMAND_MISSING = re.compile(
    r'exec: (?:"(?:python3|/bin/sh)": .*)?(?:executable file not found|no such file)'
    r'|executable (?:file )?["`](?:python3|/bin/sh)["`]'
)
"""Words of runc, crun and gVisor for a command that the image does not have.

They say the like of files of the node, such as those of the GPU's driver.
"""
_TRY_AGAIN = "Submit again, or tell your administrator."
_KILLED = (137, 143)
"""Exit codes of a container that was killed: not by itself, unless it was for its memory."""
_USAGE = 2
_RUNNER_ERRORS = (_USAGE, 70, 74)
"""Exit codes of a runner that could not write its outcome."""


def disruption_of(pod: PodRecord) -> tuple[str, str] | None:
    """Return reason and message if the cluster ended the pod, else None."""
    is_evicted = pod.reason == "Evicted" and not pod.disruption
    if is_evicted and any(words in pod.message for words in _DISK_LIMITS):
        text = _sentence("It used more disk than it was given", pod.message.strip())
        return "DiskFull", f"{text} Choose a larger flavor, or write to a volume."
    reason = _DISRUPTIONS.get(pod.disruption) or _POD_REASONS.get(pod.reason)
    return None if reason is None else (reason[0], _sentence(reason[1], pod.message))


def failure_of(pod: PodRecord | None) -> tuple[str, str]:
    """Return reason and message for an attempt whose pod ended or is gone (None)."""
    if pod is None:
        return "Lost", f"The pod is gone; {_OUTPUT_KEPT}."
    summary = _summary_of(pod.ended)
    if summary is not None:
        return summary
    disruption = disruption_of(pod)
    if disruption is not None:
        return disruption
    if pod.ended is not None:
        return _failure_of_container(pod.ended)
    if pod.failed_init is not None:
        return _failure_of_init_container(*pod.failed_init)
    if pod.reason:  # refused by the node, such as UnexpectedAdmissionError
        return "BackendError", f"Kubernetes ended the pod: {pod.reason}. {pod.message}".strip()
    return "Lost", f"The pod ended before its run did; {_OUTPUT_KEPT}."


def has_run(pod: PodRecord) -> bool:
    """Tell whether the runner of a pod that has ended had begun: else its agent sends nothing."""
    if pod.failed_init is not None or (pod.ended is not None and _failed_to_start(pod.ended)):
        return False
    return failure_of(pod)[0] != "RunnerMissing"


def _failed_to_start(end: ContainerEnd) -> bool:
    return end.reason == "StartError" or end.exit_code == _NOT_STARTED


def _failure_of_container(end: ContainerEnd) -> tuple[str, str]:
    code = end.exit_code
    if code == 0:
        return "Lost", f"The notebook ran to its end, but not all of it was sent; {_ARRIVED_KEPT}."
    if end.reason == "OOMKilled":
        return "OutOfMemory", f"Out of memory; {_OUTPUT_KEPT}. Choose a flavor with more memory."
    is_started = not _failed_to_start(end)
    if not is_started and not _COMMAND_MISSING.search(end.message):
        cause = end.message.rstrip(". \n") or f"exit code {code}"
        return "BackendError", f"The node could not start the container: {cause}. {_TRY_AGAIN}"
    if not is_started or code in _NOT_EXECUTED or "No module named job_runner" in end.message:
        return "RunnerMissing", _RUNNER_MISSING
    if code == _USAGE and "unrecognized arguments" in end.message:  # argparse's words
        return "RunnerMissing", _RUNNER_TOO_OLD
    if code in _RUNNER_ERRORS:
        return "BackendError", f"The runner ended with exit code {code}; {_OUTPUT_KEPT}."
    return "Lost", f"The container was killed (exit code {code}); {_OUTPUT_KEPT}."


def _failure_of_init_container(name: str, end: ContainerEnd) -> tuple[str, str]:
    how = ", ".join(filter(None, (end.reason, f"exit code {end.exit_code}")))
    if end.exit_code in _KILLED and end.reason != "OOMKilled":
        return "Lost", f"The pod was ended while its init container {name} ran ({how})."
    text = f"The init container {name}, which the pod patch or a webhook adds, failed ({how})."
    return "BackendError", f"{text} Tell your administrator. {end.message}".strip()


def _summary_of(end: ContainerEnd | None) -> tuple[str, str] | None:
    """Return reason and message of a failed run from the runner's termination message.

    The notebook could have written it, too: it says something of its own run only.
    """
    try:
        summary: Any = json.loads(end.message) if end else None
    except (ValueError, RecursionError):  # the container's last lines: the runner wrote nothing
        return None
    if not isinstance(summary, Mapping):
        return None
    reason, message = summary.get("reason"), summary.get("message")
    if (
        isinstance(reason, str)
        and isinstance(message, str)
        and reason not in ("Terminated", "Lost")
    ):
        return reason, message
    return None


def _sentence(text: str, details: str) -> str:
    return f"{text}; {_OUTPUT_KEPT}. {details}".strip()
