"""An event of a job, which not every dev pod of its owner sees alike.

A user may have several servers with different volumes. Lists and events have the jobs of the
server's own volumes; by its name an owner reaches every job, and learns that another server has to
publish its result.
"""

from __future__ import annotations

import json
import posixpath
from dataclasses import dataclass, replace

from ...backends.kubernetes.records import Manifest
from ...domain.job import Delivery, DeliveryState, Job
from ...exchange import Request
from ...service.event_stream import DELETED
from ..callers.volumes import ANOTHER_WORKSPACE, JobOrigins, VolumePath, volume_path


@dataclass(frozen=True)
class JobEvent:
    """The bytes of an event: as servers get it that reach the job's files, and as others do.

    `places` tells where the notebook, and the result if it goes elsewhere, are.
    """

    workspace_event: bytes
    outside_event: bytes
    places: tuple[tuple[str, VolumePath], ...] = ()

    @classmethod
    def of(cls, job: Job, request: Request, origins: JobOrigins) -> JobEvent:
        """Return the event of a job. Raises NotFound."""
        paths = [request.source]
        if request.output is not None:
            paths.append(posixpath.join(request.workspace, request.output))
        places = tuple((path, origins.volume_path(job.name, path)) for path in paths)
        return cls(_encode(job), _encode(held_elsewhere(job)), places)

    @classmethod
    def deleted(cls, name: str) -> JobEvent:
        """Return the event of a job that was deleted."""
        event = f"event: {DELETED}\ndata: {json.dumps({'name': name})}\n\n".encode()
        return cls(event, event)

    def seen_from(self, origin: Manifest, *, by_name: bool) -> bytes:
        """Return what the dev pod of an origin.json sees: of a job that it does not list nothing.

        `by_name`: it has asked for this very job.
        """
        places = [(volume_path(origin, path), place) for path, place in self.places]
        if all(caller_place == place for caller_place, place in places):
            return self.workspace_event
        caller_place, place = places[0]
        return self.outside_event if by_name or caller_place == place or not place.is_claim else b""


def held_elsewhere(job: Job) -> Job:
    """Return a job as a server sees it that cannot publish its result."""
    if not job.state.final or job.delivery.state is not DeliveryState.PENDING:
        return job
    message = ANOTHER_WORKSPACE.format(job.name)
    return replace(job, delivery=Delivery(DeliveryState.HELD, None, message))


def _encode(job: Job) -> bytes:
    return f"data: {json.dumps(job.to_json())}\n\n".encode()
