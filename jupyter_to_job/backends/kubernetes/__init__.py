"""Jobs on Kubernetes: the manifest builder and the port. The cluster's API is the controller's."""

from .backend import KubernetesBackend, placement_of, waiting_reason
from .manifest import JobPods, job_manifest
from .records import ContainerEnd, JobRecord, PodRecord

__all__ = [
    "ContainerEnd",
    "JobPods",
    "JobRecord",
    "KubernetesBackend",
    "PodRecord",
    "job_manifest",
    "placement_of",
    "waiting_reason",
]
