"""Jobs on Kubernetes: the manifest builder and the port. The cluster's API is the controller's."""

from .backend import (
    KubernetesBackend,
    placement_of,
    placement_of_error,
    placement_of_refusal,
    waiting_reason,
)
from .manifest import JobPods, job_manifest, pod_manifest
from .records import ContainerEnd, JobRecord, PodRecord
from .refusals import Refusal, explain_refusal

__all__ = [
    "ContainerEnd",
    "JobPods",
    "JobRecord",
    "KubernetesBackend",
    "PodRecord",
    "Refusal",
    "explain_refusal",
    "job_manifest",
    "placement_of",
    "placement_of_error",
    "placement_of_refusal",
    "pod_manifest",
    "waiting_reason",
]
