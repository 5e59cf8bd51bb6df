"""Finds a job's Job that is not on record: the controller ended between creating it and that.

The nonce of origin.json tells it from one that somebody else made under the same name.
"""

from __future__ import annotations

from typing import Protocol

from ...backends.kubernetes import JobRecord
from ...exchange.records import ClusterJob
from ..cluster.job_objects import JobObjects
from .job_files import JobFiles


class JobsCluster(Protocol):
    """The part of the cluster that this needs."""

    async def find_job(self, namespace: str, name: str) -> JobRecord | None:
        """Return the Job of a name as the API server knows it; None without it."""
        ...


def known_job(objects: JobObjects, name: str, files: JobFiles) -> ClusterJob | None:
    """Return the Job if a watch has told of it."""
    return _own(objects.named(files.origin.get("namespace", ""), name), files)


async def find_job(cluster: JobsCluster, name: str, files: JobFiles) -> ClusterJob | None:
    """Return the Job, also one that no watch told of yet."""
    if not files.origin.get("nonce"):
        return None
    return _own(await cluster.find_job(files.origin.get("namespace", ""), name), files)


def _own(record: JobRecord | None, files: JobFiles) -> ClusterJob | None:
    nonce = files.origin.get("nonce")
    if record is None or not nonce or record.nonce != nonce:
        return None
    return ClusterJob(files.origin.get("namespace", ""), record.name, record.uid)
