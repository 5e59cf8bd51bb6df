"""Reason and message for an attempt without an outcome, from the record of its pod."""

from __future__ import annotations

from ..backends.kubernetes import PodRecord

_OUTPUT_KEPT = "what it had printed is kept"
_MESSAGES = {
    "Evicted": f"The node was short of resources and evicted the pod; {_OUTPUT_KEPT}.",
    "DeadlineExceeded": f"The pod's time limit was reached; {_OUTPUT_KEPT}.",
    "Preempted": f"A job with a higher priority took its place; {_OUTPUT_KEPT}.",
    "NodeLost": f"The node went away; {_OUTPUT_KEPT}.",
}
_RUNNER_ERRORS = (2, 70, 74)
"""Exit codes of a runner that could not write its outcome."""


def failure_of(pod: PodRecord | None) -> tuple[str, str]:
    """Return reason and message for an attempt whose pod ended or is gone (None)."""
    if pod is None:
        return "Lost", f"The pod is gone; {_OUTPUT_KEPT}."
    if pod.reason in _MESSAGES:
        return pod.reason, f"{_MESSAGES[pod.reason]} {pod.message}".strip()
    if pod.ended is None and pod.reason:  # refused by the node, such as UnexpectedAdmissionError
        return "BackendError", f"Kubernetes ended the pod: {pod.reason}. {pod.message}".strip()
    if pod.ended is None:
        return "Lost", f"The pod ended before its run did; {_OUTPUT_KEPT}."
    if pod.ended.reason == "OOMKilled":
        return "OutOfMemory", f"Out of memory; {_OUTPUT_KEPT}. Choose a flavor with more memory."
    if pod.ended.exit_code in (126, 127) or "No module named job_runner" in pod.ended.message:
        return "RunnerMissing", "The image has no job_runner: install jupyter-to-job in it."
    if pod.ended.exit_code in _RUNNER_ERRORS:
        return (
            "BackendError",
            f"The runner ended with exit code {pod.ended.exit_code}; {_OUTPUT_KEPT}.",
        )
    return "Lost", f"The container was killed (exit code {pod.ended.exit_code}); {_OUTPUT_KEPT}."
