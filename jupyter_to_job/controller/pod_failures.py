"""Why a pod ended that could not tell itself: from its record to a reason and a sentence."""

from __future__ import annotations

from ..backends.kubernetes import PodRecord

_KEPT = "what it had printed is kept"
_BY_POD = {
    "Evicted": f"The node was short of resources and evicted the pod; {_KEPT}.",
    "DeadlineExceeded": f"The pod's time limit was reached; {_KEPT}.",
    "Preempted": f"A job with a higher priority took its place; {_KEPT}.",
    "NodeLost": f"The node went away; {_KEPT}.",
}
_BY_ITSELF = (2, 70, 74)
"""Exit codes of a runner that could not write its outcome."""


def verdict(pod: PodRecord | None) -> tuple[str, str]:
    """Return reason and message for an attempt without an outcome whose pod is over or gone."""
    if pod is None:
        return "Lost", f"The pod is gone; {_KEPT}."
    if pod.reason in _BY_POD:
        return pod.reason, f"{_BY_POD[pod.reason]} {pod.message}".strip()
    if pod.ended is None and pod.reason:  # the node would not have it: UnexpectedAdmissionError
        return "BackendError", f"Kubernetes ended the pod: {pod.reason}. {pod.message}".strip()
    if pod.ended is None:
        return "Lost", f"The pod ended before its run did; {_KEPT}."
    if pod.ended.reason == "OOMKilled":
        return "OutOfMemory", f"Out of memory; {_KEPT}. Choose a flavor with more memory."
    if pod.ended.exit_code in (126, 127) or "No module named job_runner" in pod.ended.message:
        return "RunnerMissing", "The image has no job_runner: install jupyter-to-job in it."
    if pod.ended.exit_code in _BY_ITSELF:
        return "BackendError", f"The runner ended with exit code {pod.ended.exit_code}; {_KEPT}."
    return "Lost", f"The container was killed (exit code {pod.ended.exit_code}); {_KEPT}."
